"""Modules of IREE's compiler and modules written here, both read by IREE's own tools for comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.peer import compile_module, run_peer

from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.bytecode.debug_database import CallSite, FileLineCol, FusedLocation, Location, NamedLocation
from pumice.vm.bytecode.declaration import declaration_of
from pumice.vm.bytecode.module_def import Feature, ModuleDef, Signature
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.writer import write_module

pytestmark = pytest.mark.peer

VULKAN = ("--iree-hal-target-device=vulkan",)
VMVX = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx")

SCALARS = """
func.func @steps(%n: i64) -> i64 {
  %one = arith.constant 1 : i64
  %sum = arith.addi %n, %one : i64
  %square = arith.muli %sum, %sum : i64
  return %square : i64
}
"""
MULTIPLY = """
func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
SEVERAL = """
module @several attributes {iree.reflection = {author = "some body"}} {
  util.global private mutable @counter = 7 : i32
  util.global private @weights = dense_resource<w> : tensor<64x64xf32>
  func.func @count(%by: i32 {iree.abi.name = "by"}) -> (i32 {iree.abi.name = "total"})
      attributes {iree.reflection = {note = "\\C3\\A9 \\22quoted\\22"}} {
    %0 = util.global.load @counter : i32
    %1 = arith.addi %0, %by : i32
    util.global.store %1, @counter : i32
    return %1 : i32
  }
  func.func @project(%a: tensor<?x64xf32>, %scale: f32) -> (tensor<?x64xf32>, index) {
    %weights = util.global.load @weights : tensor<64x64xf32>
    %c0 = arith.constant 0 : index
    %d = tensor.dim %a, %c0 : tensor<?x64xf32>
    %e = tensor.empty(%d) : tensor<?x64xf32>
    %f = linalg.fill ins(%scale : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %m = linalg.matmul ins(%a, %weights : tensor<?x64xf32>, tensor<64x64xf32>)
        outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    return %m, %d : tensor<?x64xf32>, index
  }
}
{-# dialect_resources: { builtin: { w: "0x04000000BYTES" } } #-}
""".replace("BYTES", bytes(i % 61 for i in range(64 * 64 * 4)).hex())

PROGRAMS = {
    "scalars": (SCALARS, VULKAN),
    "multiply": (MULTIPLY, VULKAN),
    "multiply_flat": (MULTIPLY, (*VULKAN, "--iree-vm-emit-polyglot-zip=false")),
    "multiply_async": (MULTIPLY, (*VULKAN, "--iree-execution-model=async-external")),
    "multiply_stripped": (MULTIPLY, (*VULKAN, "--iree-vm-bytecode-module-strip-source-map=true")),
    "multiply_vmvx": (MULTIPLY, VMVX),
    "several": (SEVERAL, VULKAN),
    "several_flat": (SEVERAL, (*VULKAN, "--iree-vm-emit-polyglot-zip=false")),
}


@pytest.fixture(scope="session")
def programs() -> dict[str, Path]:
    """Every program, compiled."""
    # Executables hold the source's name: one source, one name.
    return {
        name: compile_module(source, device=options, name=f"{name.partition('_')[0]}.mlir")
        for name, (source, options) in PROGRAMS.items()
    }


def _dump(path: Path) -> dict[str, object]:
    dumped = json.loads(run_peer("iree-dump-module", "--output=flatbuffer-json", path).stdout)
    assert isinstance(dumped, dict)
    return dumped


def _without_defaults(table: dict[str, object]) -> dict[str, object]:
    """The dump leaves out what has its default value."""
    return {key: value for key, value in table.items() if value not in (0, [], None, {})}


def _attributes(attributes: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in attributes]


def _signature(signature: Signature) -> dict[str, object]:
    return _without_defaults(
        {"calling_convention": signature.calling_convention, "attrs": _attributes(signature.attributes.items())}
    )


def _features(requirements: int) -> str | int:
    return " ".join(str(bit.name) for bit in Feature if bit & requirements) or 0


def _location(location: Location) -> tuple[str, object]:
    if isinstance(location, CallSite):
        return "CallSiteLocDef", _without_defaults({"callee": location.callee, "caller": location.caller})
    if isinstance(location, FileLineCol):
        fields = {"filename": location.filename, "line": location.line, "column": location.column}
        return "FileLineColLocDef", _without_defaults(fields)
    if isinstance(location, FusedLocation):
        fused = {"metadata": location.metadata, "locations": list(location.locations)}
        return "FusedLocDef", _without_defaults(fused)
    if isinstance(location, NamedLocation):
        return "NameLocDef", _without_defaults({"name": location.name, "child_location": location.child})
    return "NONE", None


def _as_dumped(module: ModuleDef) -> dict[str, object]:
    """A module in the dump's form, but for its constants."""
    debug = None
    if module.debug is not None:
        locations = [_location(location) for location in module.debug.locations]
        debug = {
            "location_table_type": [kind for kind, _ in locations],
            "location_table": [value for _, value in locations],
            "functions": [
                {
                    "local_name": entry.local_name,
                    "locations": [{"bytecode_offset": pc, "location": index} for pc, index in entry.entries()],
                }
                for entry in module.debug.functions
            ],
        }
    flags = {True: None, False: "OPTIONAL"}
    return _without_defaults(
        {
            "name": module.name,
            "version": module.version,
            "requirements": _features(module.requirements),
            "attrs": _attributes(module.attributes.items()),
            "types": [{"full_name": name} for name in module.types],
            "dependencies": [
                _without_defaults(
                    {"name": entry.name, "minimum_version": entry.minimum_version, "flags": flags[entry.required]}
                )
                for entry in module.dependencies
            ],
            "imported_functions": [
                _without_defaults(
                    {"full_name": entry.name, "signature": _signature(entry.signature), "flags": flags[entry.required]}
                )
                for entry in module.imports
            ],
            "exported_functions": [
                _without_defaults({"local_name": entry.name, "internal_ordinal": entry.ordinal})
                for entry in module.exports
            ],
            "function_signatures": [_signature(signature) for signature in module.signatures],
            "module_state": _without_defaults(
                {"global_bytes_capacity": module.global_bytes, "global_ref_count": module.global_refs}
            ),
            "function_descriptors": [
                {
                    "bytecode_offset": entry.offset,
                    "bytecode_length": entry.length,
                    "requirements": _features(entry.requirements),
                    "reserved": 0,
                    "block_count": entry.block_count,
                    "i32_register_count": entry.i32_register_count,
                    "ref_register_count": entry.ref_register_count,
                }
                for entry in module.functions
            ],
            "bytecode_version": module.bytecode_version,
            "bytecode_data": list(module.bytecode),
            "debug_database": debug,
        }
    )


def _compare(dumped: dict[str, object], module: ModuleDef) -> None:
    segments = dumped.pop("rodata_segments", [])
    assert isinstance(segments, list)
    assert len(segments) == len(module.rodata)
    for segment, data in zip(segments, module.rodata, strict=True):
        if "external_data_length" in segment:
            assert segment["external_data_length"] == len(data)
        else:
            assert segment.get("embedded_data", []) == list(data)
    assert dumped == _as_dumped(module)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_say_what_the_peer_reads(programs: dict[str, Path], name: str) -> None:
    with ModuleArchive.open(programs[name]) as archive:
        module = read_module(archive)
    assert (module.debug is None) == (name == "multiply_stripped")
    _compare(_dump(programs[name]), module)


def test_both_forms_hold_the_same_constants(programs: dict[str, Path]) -> None:
    modules = [read_module(ModuleArchive.open(programs[name])) for name in ("several", "several_flat")]
    assert modules[0].rodata == modules[1].rodata
    weights = bytes(i % 61 for i in range(64 * 64 * 4))
    assert [data for data in modules[0].rodata if data == weights]
    # Executables start with the magic of their format.
    assert len([data for data in modules[0].rodata if data[:4] == b"VKE1"]) == 1


@pytest.mark.parametrize("polyglot", [False, True])
@pytest.mark.parametrize("limit", [0, 4096, 1 << 20])
@pytest.mark.parametrize("name", ["several", "multiply_vmvx"])
def test_the_peer_reads_what_is_written(
    programs: dict[str, Path], tmp_path: Path, name: str, limit: int, polyglot: bool
) -> None:
    module = read_module(ModuleArchive.open(programs[name]))
    data = write_module(module, polyglot=polyglot, embedded_limit=limit)
    assert read_module(ModuleArchive.from_bytes(data)) == module
    path = tmp_path / "written.vmfb"
    path.write_bytes(data)
    dumped = _dump(path)
    segments = dumped["rodata_segments"]
    assert isinstance(segments, list)
    external = [segment for segment in segments if "external_data_length" in segment]
    assert len(external) == sum(0 < len(data) >= limit for data in module.rodata)
    _compare(dumped, module)


@pytest.mark.parametrize("polyglot", [False, True])
def test_the_peer_runs_what_is_written(programs: dict[str, Path], tmp_path: Path, polyglot: bool) -> None:
    path = tmp_path / "written.vmfb"
    inputs = ["--input=4xf32=1 2 3 4", "--input=4xf32=2 3 4 5"]
    for limit in (0, 1 << 20):
        module = read_module(ModuleArchive.open(programs["multiply_vmvx"]))
        path.write_bytes(write_module(module, polyglot=polyglot, embedded_limit=limit))
        printed = run_peer(
            "iree-run-module", "--device=local-sync", f"--module={path}", "--function=mul", *inputs
        ).stdout
        assert "4xf32=2 6 12 20" in printed
    module = read_module(ModuleArchive.open(programs["scalars"]))
    path.write_bytes(write_module(module, polyglot=polyglot))
    assert "i64=49" in run_peer("iree-run-module", f"--module={path}", "--function=steps", "--input=6").stdout


def test_declarations_fit_the_functions(programs: dict[str, Path]) -> None:
    found = {}
    for name, path in programs.items():
        module = read_module(ModuleArchive.open(path))
        for export in module.exports:
            declaration = declaration_of(module.signatures[export.ordinal])
            if declaration is not None:
                assert declaration.name == export.name
                assert declaration.fits(CallingConvention.parse(module.signatures[export.ordinal].calling_convention))
                found[name, export.name] = declaration.format()
    assert found["several", "count"] == "count(by: i32) -> (total: i32)"
    assert found["several", "project"] == (
        "project(input0: tensor<?x64xf32>, input1: f32) -> (output0: tensor<?x64xf32>, output1: index)"
    )
    assert found["multiply_async", "mul"].startswith("async mul(input0: tensor<4xf32>, ")
    assert ("scalars", "steps") in found


def test_locations_are_lines_of_the_source(programs: dict[str, Path]) -> None:
    module = read_module(ModuleArchive.open(programs["scalars"]))
    assert module.debug is not None
    (ordinal,) = (export.ordinal for export in module.exports if export.name == "steps")
    length = module.functions[ordinal].length
    told = {str(module.debug.location_of("steps", pc)) for pc in range(length)}
    lines = SCALARS.splitlines()
    for operation in ("arith.addi", "arith.muli"):
        (line,) = (number for number, text in enumerate(lines, 1) if operation in text)
        column = lines[line - 1].index(operation.split()[0]) + 1
        assert any(f"scalars.mlir:{line}:{column}" in text for text in told), told
