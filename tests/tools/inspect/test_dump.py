"""``pumice dump``: what modules hold, which nothing but the file is needed for."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.peer import compile_module, run_peer

from pumice import shaders
from pumice.formats.vke1 import (
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    ExecutableDef,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
)
from pumice.formats.vke1_writer import build_executable
from pumice.hal_vulkan import reflect
from pumice.spirv.checks.tools import disassemble, find_tool
from pumice.status import UnavailableError
from pumice.tools.cli import main
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import disassemble_function
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.module_def import DependencyDef, ModuleDef
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.verifier import verify_module
from pumice.vm.bytecode.writer import write_module

PROGRAMS = Path(__file__).parents[1] / "programs"
SAXPY = shaders.spirv("examples/saxpy")


TINY = "vm.module @m version 0\nvm.func @f() -> () {\n^bb0:\n  vm.return\n}\n"


def executable(code: bytes) -> bytes:
    """A Vulkan executable of a kernel that ships."""
    entry = reflect(code).entry_point(None)
    push = entry.push_constants
    return build_executable(
        ExecutableDef(
            (PipelineDef(0, entry.name, 0, subgroup_size=32),),
            (DescriptorSetLayoutDef(tuple(DescriptorBindingDef(b.binding) for b in entry.bindings)),),
            (PipelineLayoutDef((0,), (PushConstantRange(0x20, 0, push.size),) if push else ()),),
            (memoryview(code),),
        )
    )


@pytest.fixture(scope="module")
def definition() -> ModuleDef:
    """A module with constants of every kind, one of them a module."""
    text = (PROGRAMS / "everything.vmasm").read_text(encoding="utf-8")
    kit = assemble(text, file_name="everything.vmasm")
    nested = write_module(assemble((PROGRAMS / "user.vmasm").read_text(encoding="utf-8")), polyglot=True)
    constants = (executable(SAXPY), nested, b"VKE1" + bytes(60), bytes(5000))
    return dataclasses.replace(
        kit,
        rodata=(*kit.rodata, *map(memoryview, constants)),
        dependencies=(DependencyDef("absent", 4, required=False),),
    )


@pytest.fixture(scope="module")
def module(definition: ModuleDef, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("modules") / "kit.vmfb"
    path.write_bytes(write_module(definition))
    return path


def dump(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["dump", *map(str, arguments)], input=stdin)


def good(*arguments: object, stdin: bytes | None = None) -> str:
    result = dump(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def rows(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_tables(module: Path, definition: ModuleDef) -> None:
    printed = rows(good(module))
    assert printed[0] == ["module kit"]
    size = module.stat().st_size
    for row in (
        ["version", "3"],
        ["bytecode", f"version 17.0, {len(definition.bytecode)} bytes"],
        ["features", "ext_f32"],
        ["depends on", "absent of version 4 or later (optional)"],
        ["globals", "4 bytes, 0 references"],
        ["debug information", "no"],
        ["attribute", "author = nobody"],
        ["add", "0ii_i", "add(left: i32, right: i32) -> (sum: i32)"],
        ["numbers", "0iIfF_iIfF", "-"],
        ["absent.thing", "0ri_v", "optional"],
        ["0", "text", "9", "'some text'"],
        ["1", "data", "3"],
        ["3", "module", str(len(definition.rodata[3])), "user, bytecode version 17.0, exports twice"],
        ["5", "data", "5000"],
        ["file", "1", str(size)],
        ["vulkan executable", "2", str(sum(len(definition.rodata[i]) for i in (2, 4)))],
    ):
        assert row in printed, row
    (pipeline,) = [row for row in printed if len(row) == 8 and row[1] == "main"]
    entry = reflect(SAXPY).entry_point(None)
    assert entry.push_constants is not None
    assert pipeline[0] == "2" and pipeline[2:6] == [
        "descriptor",
        " x ".join(map(str, entry.local_size)),
        str(len(entry.bindings)),
        f"{entry.push_constants.size} bytes",
    ]
    assert pipeline[6].endswith(f"{len(SAXPY)} bytes") and "Shader" in pipeline[7]
    (damaged,) = [row for row in printed if row[0] == "4"]
    assert damaged[1] == "vulkan executable" and "expected a content size" in damaged[3]


def test_json(module: Path, definition: ModuleDef) -> None:
    summary = json.loads(good(module, "--json"))
    assert (summary["name"], summary["version"], summary["bytecode_version"]) == ("kit", 3, "17.0")
    assert summary["problem"] is None and summary["attributes"] == {"author": "nobody"}
    assert [one["name"] for one in summary["exports"]] == [one.name for one in definition.exports]
    assert summary["imports"] == [{"name": "absent.thing", "calling_convention": "0ri_v", "required": False}]
    assert summary["dependencies"] == [{"name": "absent", "minimum_version": 4, "required": False}]
    for one, function in zip(summary["functions"], definition.functions, strict=True):
        assert (one["bytes"], one["blocks"]) == (function.length, function.block_count)
        assert (one["i32_registers"], one["ref_registers"]) == (
            function.i32_register_count,
            function.ref_register_count,
        )
    assert summary["functions"][-1]["name"] is None
    assert [one["bytes"] for one in summary["rodata"]] == [len(data) for data in definition.rodata]
    kinds = [one["kind"] for one in summary["rodata"]]
    assert kinds == ["text", "data", "vulkan executable", "module", "vulkan executable", "data"]
    pipeline = summary["rodata"][2]["executable"]["pipelines"][0]
    assert pipeline["subgroup_size"] == 32 and pipeline["bindings"] == len(reflect(SAXPY).entry_point(None).bindings)
    assert summary["rodata"][2]["executable"]["shader_modules"][0]["capabilities"] == list(reflect(SAXPY).capabilities)
    nested = summary["rodata"][3]["module"]
    assert nested["name"] == "user" and [one["name"] for one in nested["exports"]] == ["twice"]
    assert set(nested) == set(summary)
    totals = summary["totals"]
    assert totals["file"] == module.stat().st_size and totals["rodata"] == sum(map(len, definition.rodata))
    assert sum(kind["bytes"] for kind in totals["rodata_by_kind"].values()) == totals["rodata"]
    assert sum(kind["count"] for kind in totals["rodata_by_kind"].values()) == len(definition.rodata)


def test_every_key_is_documented(module: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.partition("## What a compiled program contains")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`([a-z0-9_]+)`", section))
    summary = json.loads(good(module, "--json"))
    keys = set(summary) | set(summary["totals"])
    for several in ("imports", "exports", "dependencies", "functions", "rodata"):
        keys |= {key for one in summary[several] for key in one}
    assert keys <= documented, keys - documented


def test_stdin(module: Path) -> None:
    assert good("-", stdin=module.read_bytes()) == good(module)


def test_disassembly(module: Path, definition: ModuleDef) -> None:
    verified = verify_module(definition)
    whole = good(module, "--disassemble")
    assert whole.startswith("vm.module @kit version 3\n")
    for ordinal in range(len(definition.functions)):
        one = disassemble_function(verified, ordinal, offsets=True, places=True)
        assert one in whole
        assert good(module, "--disassemble", f"--function=@{ordinal}") == one
    add = good(module, "--disassemble", "--function=add")
    assert add == good(module, "--disassemble", "--function=kit.add") and "vm.add.i32" in add


def test_python(module: Path) -> None:
    add = good(module, "--python", "--function=add")
    assert add.startswith("# kit.add 0ii_i\n")
    compile(add, "add", "exec")
    whole = good(module, "--python")
    assert add in whole
    compile(whole, "whole", "exec")
    assert "# kit.@13 0v_v\n" in whole


def test_spirv(module: Path, definition: ModuleDef, tmp_path: Path) -> None:
    try:
        find_tool("spirv-dis")
    except UnavailableError as error:
        pytest.skip(error.message)
    # The damaged executable is an error, as there is nothing to show in its place.
    result = dump(module, "--spirv")
    assert result.exit_code == 1 and "expected a content size" in result.stderr
    path = tmp_path / "kit.vmfb"
    path.write_bytes(write_module(dataclasses.replace(definition, rodata=definition.rodata[:3])))
    assert good(path, "--spirv") == f"; rodata[2] shader module 0: main\n{disassemble(SAXPY).rstrip()}\n"
    path.write_bytes(write_module(dataclasses.replace(definition, rodata=definition.rodata[:2])))
    result = dump(path, "--spirv")
    assert (result.exit_code, result.stdout) == (0, "") and "no Vulkan executables" in result.stderr


def test_spirv_without_the_tool(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_SPIRV_TOOLS", str(tmp_path))
    result = dump(module, "--spirv")
    assert result.exit_code == 1 and result.stderr.startswith("error: spirv-dis was not found")


def test_modules_that_cannot_be_loaded_are_shown(definition: ModuleDef, tmp_path: Path) -> None:
    path = tmp_path / "future.vmfb"
    path.write_bytes(write_module(dataclasses.replace(definition, bytecode_version=99 << 16)))
    assert ["bytecode", f"version 99.0, {len(definition.bytecode)} bytes"] in rows(good(path))
    assert "99.0" in json.loads(good(path, "--json"))["problem"]
    for option in ("--disassemble", "--python"):
        result = dump(path, option)
        assert result.exit_code == 1 and result.stderr.startswith("error: ") and "99.0" in result.stderr
    bytecode = bytearray(definition.bytecode)
    bytecode[definition.functions[0].offset] = 0xFF
    path.write_bytes(write_module(dataclasses.replace(definition, bytecode=memoryview(bytecode))))
    summary = json.loads(good(path, "--json"))
    assert "add" in summary["problem"]
    assert any(row[0] == "problem" for row in rows(good(path)))


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    definition = dataclasses.replace(assemble(TINY), name="\x1b[31mred", attributes={"\x1b[1m": "\x07"})
    path = tmp_path / "red.vmfb"
    path.write_bytes(write_module(definition))
    for options in ((), ("--json",), ("--disassemble",), ("--python",)):
        printed = good(path, *options)
        assert "\x1b" not in printed and "\x07" not in printed
    assert json.loads(good(path, "--json"))["name"] == "\x1b[31mred"


def test_nested_modules_end_somewhere(tmp_path: Path) -> None:
    definition = assemble(TINY)
    data = write_module(definition)
    for _ in range(10):
        data = write_module(dataclasses.replace(definition, rodata=(memoryview(data),)))
    path = tmp_path / "nested.vmfb"
    path.write_bytes(data)
    summary = json.loads(good(path, "--json"))
    depth = 0
    while summary is not None:
        summary, depth = summary["rodata"][0]["module"], depth + 1
    assert 2 < depth < 8
    good(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--json", "--spirv"), "expected one of --json, --spirv"),
        (("--function=add",), "--function goes with --disassemble or --python"),
        (("--disassemble", "--function=nope"), "--function nope: no such function; exported are: add, numbers, "),
        (("--disassemble", "--function=@99"), "--function @99: expected a number below 14"),
        (("--python", "--function=@-1"), "--function @-1: no such function"),
        (("--bogus",), "No such option"),
    ],
)
def test_wrong_usage(module: Path, arguments: tuple[str, ...], message: str) -> None:
    result = dump(module, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}"), result.stderr


def test_files_that_are_no_modules(module: Path, tmp_path: Path) -> None:
    whole = module.read_bytes()
    for content in (b"", b"hello", bytes(300), b"PK\x03\x04" + bytes(60), whole[: len(whole) // 3], whole[:70]):
        path = tmp_path / "x.vmfb"
        path.write_bytes(content)
        for options in ((), ("--json",), ("--disassemble",), ("--python",), ("--spirv",)):
            result = dump(path, *options)
            assert (result.exit_code, result.stdout) == (1, ""), result.stderr
            assert result.stderr.startswith("error: ") and "internal" not in result.stderr
    for missing in (tmp_path / "missing.vmfb", tmp_path):
        assert dump(missing).exit_code == 1


def test_info_of_a_module_is_the_same(module: Path) -> None:
    shown = CliRunner().invoke(main, ["info", str(module), "--json"])
    assert shown.exit_code == 0 and json.loads(shown.stdout) == json.loads(dump(module, "--json").stdout)


@pytest.mark.slow
def test_no_vulkan_loader_is_needed(module: Path) -> None:
    for options in ([], ["--json"], ["--disassemble"], ["--python", "--function=add"]):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from pumice.tools.cli import main; main(prog_name='pumice')",
                "dump",
                module,
                *options,
            ],
            env={**os.environ, "PUMICE_VULKAN_LIBRARY": "/nonexistent"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


# -- the peer ----------------------------------------------------------------------------------------

SOURCE = """
func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def compiled(backend: str) -> Path:
    return compile_module(SOURCE, device=[f"--iree-hal-target-backends={backend}"], name="mul.mlir")


@pytest.mark.peer
def test_what_the_peer_says_too() -> None:
    path = compiled("vulkan-spirv")
    summary = json.loads(good(path, "--json"))
    done = run_peer("iree-dump-module", path)
    found = re.findall(r"^  \[ *\d+\] ([\w.]+)\(", done.stdout, re.MULTILINE)
    assert found == [one["name"] for several in ("imports", "exports") for one in summary[several]]
    sizes = re.findall(r"\.rodata\[ *\d+\] +(?:embedded|external) +(\d+) bytes", done.stdout)
    assert sizes == [str(one["bytes"]) for one in summary["rodata"]]
    assert f"Bytecode: {summary['totals']['bytecode']} bytes" in done.stdout
    (executable_,) = [one for one in summary["rodata"] if one["kind"] == "vulkan executable"]
    (pipeline,) = executable_["executable"]["pipelines"]
    assert pipeline["bindings"] == 3
    table = good(path)
    assert pipeline["entry_point"] in table
    declaration = "mul(input0: tensor<4xf32>, input1: tensor<4xf32>) -> (output0: tensor<4xf32>)"
    assert ["mul", "0rr_r", declaration] in rows(table)
    assert summary["exports"][0]["declaration"] == declaration


@pytest.mark.peer
def test_executables_of_vmvx_are_modules() -> None:
    path = compiled("vmvx")
    nested = [one for one in json.loads(good(path, "--json"))["rodata"] if one["kind"] == "module"]
    assert len(nested) == 1 and nested[0]["module"]["problem"] is None
    definition = read_module(ModuleArchive.open(path))
    inner = read_module(ModuleArchive.from_bytes(definition.rodata[nested[0]["ordinal"]]))
    assert [one["name"] for one in nested[0]["module"]["exports"]] == [one.name for one in inner.exports]
    assert any(row[1:2] == ["module"] and inner.name in row[-1] for row in rows(good(path)))
