"""``pumice run`` with compiled programs: mostly modules in VM assembly, and iree-run-module's own output."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.peer import compile_module, run_peer

import pumice
from pumice import shaders
from pumice.runtime.parameters.index import ParameterIndex
from pumice.tools.cli import main
from pumice.tools.run.command import advice
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.declaration import parse_declaration
from pumice.vm.bytecode.writer import write_module

PROGRAMS = Path(__file__).parents[1] / "programs"
SUCCESS = "[SUCCESS] all function outputs matched their expected values.\n"

device = pytest.mark.vulkan


def module_bytes(name: str) -> bytes:
    path = PROGRAMS / f"{name}.vmasm"
    return write_module(assemble(path.read_text(encoding="utf-8"), file_name=str(path)), polyglot=True)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assembled programs: ``everything.vmfb`` and ``user.vmfb``."""
    made = tmp_path_factory.mktemp("programs")
    for name in ("everything", "user"):
        (made / f"{name}.vmfb").write_bytes(module_bytes(name))
    return made


@pytest.fixture
def kit(folder: Path) -> Path:
    return folder / "everything.vmfb"


def run(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["run", *map(str, arguments)], input=stdin)


def good(*arguments: object, stdin: bytes | None = None) -> str:
    """What it printed, having gone well."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def wrong(status: int, message: str, *arguments: object) -> Result:
    """The result of what fails with an error of this form."""
    result = run(*arguments)
    assert result.exit_code == status, (result.stdout, result.stderr)
    assert re.search(f"^error: {message}", result.stderr, re.MULTILINE), result.stderr
    assert "internal" not in result.stderr and "Traceback" not in result.stderr
    assert ("see `pumice run --help`" in result.stderr) == (status == 2)
    return result


# -- functions and scalars: no device is needed ------------------------------------------------------


def test_a_function_of_numbers(kit: Path) -> None:
    expected = "EXEC @add\nresult[0]: i32=5\n"
    for function in ("add", "kit.add"):
        assert good(kit, f"--function={function}", "--input=2", "--input=3") == expected
    assert good(f"--module={kit}", "--function", "add", "--input", "2", "--input", "0x3") == expected
    assert good(kit, "--function=add", "--input=i32=2", "--input=i8=3") == expected
    assert run(kit, "--function=add", "--input=2", "--input=3").stderr == ""


def test_numbers_of_each_type(kit: Path) -> None:
    printed = good(kit, "--function=numbers", "--input=-1", f"--input={2**40}", "--input=0.1", "--input=1e300")
    assert (
        printed
        == f"EXEC @numbers\nresult[0]: i32=-1\nresult[1]: i64={2**40}\nresult[2]: f32=0.1\nresult[3]: f64=1e+300\n"
    )
    null = good(kit, "--function=numbers", "--input=(null)", "--input=(ignored)", "--input=inf", "--input=nan")
    assert null == "EXEC @numbers\nresult[0]: i32=0\nresult[1]: i64=0\nresult[2]: f32=inf\nresult[3]: f64=nan\n"


def test_declared_types_of_numbers(kit: Path) -> None:
    assert good(kit, "--function=half", "--input=1.5", "--input=true") == (
        "EXEC @half\nresult[0]: f16=1.5\nresult[1]: i32=1\n"
    )
    wrong(2, r"--input 1 \(7\): .*expected a bool", kit, "--function=half", "--input=1", "--input=7")


def test_a_declaration_is_parsed_once(kit: Path) -> None:
    parse_declaration.cache_clear()
    good(kit, "--function=add", "--input=2", "--input=3")
    assert parse_declaration.cache_info().misses == 1


def test_no_results(kit: Path) -> None:
    assert good(kit, "--function=nothing") == "EXEC @nothing\n"


def test_modules_are_linked_in_order(folder: Path) -> None:
    kit, user = folder / "everything.vmfb", folder / "user.vmfb"
    expected = "EXEC @twice\nresult[0]: i32=8\n"
    # The only export of the last module needs no name.
    assert good(f"--module={kit}", f"--module={user}", "--input=4") == expected
    assert good(f"--module={kit}", user, "--input=4") == expected
    wrong(1, "module 'user' imports kit.add, but there is no module 'kit'", user, "--input=4")
    wrong(1, "module 'user' imports kit.add", f"--module={user}", kit, "--function=nothing")
    wrong(1, ".* has a module 'kit' already", f"--module={kit}", kit, "--function=nothing")


def test_stdin(folder: Path) -> None:
    kit = (folder / "everything.vmfb").read_bytes()
    for file in ("-", "--module=-"):
        assert good(file, "--function=add", "--input=2", "--input=3", stdin=kit) == "EXEC @add\nresult[0]: i32=5\n"
    assert good("--module=-", folder / "user.vmfb", "--input=4", stdin=kit) == "EXEC @twice\nresult[0]: i32=8\n"
    wrong(2, "only one module can be read from stdin", "-", "--module=-", "--function=add")


def test_reading_instead_of_mapping(kit: Path) -> None:
    assert good(kit, "--module_mode=preload", "--function=count") == "EXEC @count\nresult[0]: i32=1\n"


def test_which_functions_there_are(kit: Path) -> None:
    result = wrong(2, "--function is missing; module 'kit' exports these:\n", kit)
    for line in (
        "kit.add(left: i32, right: i32) -> (sum: i32)",
        "kit.numbers(argument0: i32, argument1: i64, argument2: f32, argument3: f64) -> ",
        "kit.nothing() -> ()",
    ):
        assert f"\n  {line}" in result.stderr
    assert "internal()" not in result.stderr
    result = wrong(2, "--function nope: no such function; module 'kit' exports these:\n", kit, "--function=nope")
    assert "\n  kit.add(" in result.stderr
    wrong(2, "--function user.add: no such function", kit, "--function=user.add")


def test_a_program_without_functions(tmp_path: Path) -> None:
    path = tmp_path / "empty.vmfb"
    path.write_bytes(
        write_module(assemble("vm.module @empty version 0\nvm.func @f() -> () {\n^bb0:\n  vm.return\n}\n"))
    )
    wrong(2, "module empty exports no function", path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--function=add", "--input=2"),
            r"kit\.add\(left: i32, right: i32\) -> \(sum: i32\) takes 2 --input values, got 1",
        ),
        (("--function=add", "--input=1", "--input=2", "--input=3"), r".*takes 2 --input values, got 3"),
        (("--function=nothing", "--input=1"), r".*takes 0 --input values, got 1"),
        (("--function=add", "--input=2", "--input=x"), r"--input 1 \(x\): .*expected an integer"),
        (("--function=add", "--input=2", "--input=2.5"), r"--input 1 \(2\.5\): "),
        (("--function=add", "--input=2", "--input="), r"--input 1 \(\): expected a value, got nothing"),
        (("--function=add", "--input=2", f"--input={2**32}"), r"--input 1 .*expected an integer"),
        (
            ("--function=add", "--input=2", "--input=f32=3"),
            r"--input 1 .*right: i32 takes a number such as i32=5, got f32",
        ),
        (("--function=add", "--input=2", "--input=i64=3"), r"--input 1 .*got i64"),
        (("--function=add", "--input=2", "--input=2xi32=3"), r"--input 1 .*got 2xi32"),
        (("--function=add", "--input=2", "--input=@a.npy"), r"--input 1 .*is a number; files hold arrays"),
        (("--function=add", "--input=2", "--input=&i32"), r"--input 1 .*is a number; storage"),
        (("--function=echo", "--input=2x2xq32=1"), r"--input 0 .*expected an element type"),
        (("--function=echo", "--input=2x2xf32=1,2,3"), r"--input 0 .*expected 4 elements"),
        (("--function=echo", "--input=1,2,3"), r"--input 0 .*expected 4 elements"),
        (("--function=any", "--input=5"), r"--input 0 \(5\): argument0: ref takes a buffer with its shape and type"),
        (
            ("--function=add", "--input=2", "--input=3", "--expected_output=4", "--expected_output=5"),
            r".*has 1 result, got 2",
        ),
        (("--function=add", "--input=2", "--input=3", "--expected_output=x"), r"--expected_output 0 \(x\)"),
        (
            ("--function=any", "--input=f32=1", "--expected_output=&f32"),
            r"--expected_output 0 .*storage \(&\) is for inputs",
        ),
        (
            ("--function=add", "--input=2", "--input=3", "--output=-", "--output=-"),
            r".*has 1 result, got 2 --output options",
        ),
        (("--function=add", "--input=2", "--input=3", "--output=0=@x.npy"), r"--output '0=@x\.npy': expected @FILE"),
        (("--function=add", "--input=2", "--input=3", "--output=@"), r"--output '@': expected @FILE"),
        (("--function=nothing", "--parameters=scope="), r"--parameters 'scope=': expected FILE or SCOPE=FILE"),
        (("--function=nothing", "--timeout=0"), r".*'--timeout': expected a finite number of seconds above 0"),
        (("--function=nothing", "--timeout=nan"), r".*'--timeout': expected a finite number of seconds above 0"),
        (("--function=nothing", "--equality_mode=near"), r".*'--equality_mode'"),
        (("--function=nothing", "--device=cuda"), r"--device: device URI 'cuda'"),
        (("--function=nothing", "--binding=0=4xf32"), r"--binding is for kernels; .* is a bytecode module"),
        (("--function=nothing", "--expect=0=4xf32=1"), r"--expect is for kernels"),
        (
            ("--function=nothing", "--task_topology_group_count=4"),
            r"--task_topology_group_count is a flag of iree-run-module",
        ),
        (("--function=nothing", "--bogus=4"), r"No such option"),
    ],
    ids=lambda value: " ".join(value)[-50:] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_wrong_usage(kit: Path, arguments: tuple[str, ...], message: str) -> None:
    assert wrong(2, message, kit, *arguments).stdout == ""


def test_module_options_are_not_for_kernels() -> None:
    kernel = shaders.path("mul")
    wrong(2, r"--function is for compiled programs; .* is a SPIR-V module", kernel, "--function=main")
    wrong(2, r"--module is for compiled programs", kernel, "--module=x.vmfb")
    wrong(2, r"a kernel runs on one device, got --device 2 times", kernel, "--device=vulkan", "--device=vulkan")
    wrong(2, r"Missing argument 'FILE'")


def test_files_that_are_no_modules(tmp_path: Path, kit: Path) -> None:
    whole = kit.read_bytes()
    files = {
        "zip.vmfb": b"PK\x03\x04" + bytes(60),
        "cut.vmfb": whole[: len(whole) // 2],
        "header.vmfb": b"\x10\0\0\0\x0c\0\0\0IREE",
        "text.vmfb": b"hello",
        "empty.vmfb": b"",
        "zeros.vmfb": bytes(200),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert wrong(1, "", path, "--function=f").stdout == ""
        assert wrong(1, "", f"--module={path}", "--function=f").stdout == ""
        assert wrong(1, "", f"--module={path}", "--module_mode=preload", "--function=f").stdout == ""
    for missing in (tmp_path / "missing.vmfb", tmp_path):
        wrong(1, "", missing)
        wrong(1, "", f"--module={missing}")


def test_an_unknown_version(tmp_path: Path) -> None:
    import dataclasses

    text = (PROGRAMS / "everything.vmasm").read_text(encoding="utf-8")
    path = tmp_path / "future.vmfb"
    path.write_bytes(write_module(dataclasses.replace(assemble(text), bytecode_version=99 << 16)))
    wrong(1, r".*99\.0", path, "--function=add")


def test_what_a_program_fails_with(kit: Path) -> None:
    result = wrong(1, r"kit\.fails.*: the program says no", kit, "--function=fails")
    assert result.stdout == "EXEC @fails\n"
    wrong(1, "expected lists nested at most 16 deep", kit, "--function=itself")


def test_timeout(kit: Path) -> None:
    wrong(1, r"kit\.forever was not done within its timeout of 0\.1 s", kit, "--function=forever", "--timeout=0.1")
    assert good(kit, "--function=count", "--timeout=100") == "EXEC @count\nresult[0]: i32=1\n"


def test_timeout_of_initializers(tmp_path: Path) -> None:
    path = tmp_path / "stuck.vmfb"
    text = (
        "vm.module @stuck version 0\nvm.export @__init\nvm.func @__init() -> () {\n^bb0:\n  vm.br ^bb1()\n"
        "^bb1:\n  vm.br ^bb1()\n}\n"
        "vm.export @f\nvm.func @f() -> () {\n^bb0:\n  vm.return\n}\n"
    )
    path.write_bytes(write_module(assemble(text)))
    wrong(1, r"stuck\.__init was not done within its timeout of 0\.1 s", path, "--timeout=0.1")


# -- outputs and expectations ------------------------------------------------------------------------


def test_outputs_of_numbers(kit: Path, tmp_path: Path) -> None:
    inputs = ("--function=numbers", "--input=1", "--input=2", "--input=3.5", "--input=4.25")
    assert (
        good(kit, *inputs, "--output=", "--output=-", "--output=", "--output=-") == "EXEC @numbers\ni64=2\nf64=4.25\n"
    )
    npy, raw = tmp_path / "x.npy", tmp_path / "x.bin"
    printed = good(kit, *inputs, f"--output=@{npy}", f"--output=+{npy}", f"--output=@{raw}", f"--output=+{raw}")
    assert printed == "EXEC @numbers\n"
    with npy.open("rb") as file:
        first, second = np.load(file), np.load(file)
        assert file.read() == b""
    assert (first.dtype, first.shape, first.item()) == (np.int32, (), 1)
    assert (second.dtype, second.item()) == (np.int64, 2)
    assert raw.read_bytes() == np.float32(3.5).tobytes() + np.float64(4.25).tobytes()
    # What is not appended to is made anew.
    good(kit, *inputs, f"--output=@{npy}", "--output=", "--output=", "--output=")
    assert npy.stat().st_size < 200


def test_expected_numbers(kit: Path, tmp_path: Path) -> None:
    inputs = ("--function=numbers", "--input=1", "--input=2", "--input=3.5", "--input=nan")
    expected = ("--expected_output=1", "--expected-output=i64=2", "--expected_output=3.50001", "--expected_output=nan")
    assert good(kit, *inputs, *expected) == f"EXEC @numbers\n{SUCCESS}"
    everything = ("--expected_output=(ignored)",) * 4
    assert good(kit, *inputs, *everything) == f"EXEC @numbers\n{SUCCESS}"
    result = wrong(
        1, r"1 of 4 result\(s\) are not what was expected", kit, *inputs, "--expected_output=9", *everything[1:]
    )
    assert result.stdout == "EXEC @numbers\n[FAILED] result[0]: i32 values differ\n  expected: 9\n  actual: 1\n"
    result = wrong(1, r"2 of 4", kit, *inputs, *expected[:2], "--expected_output=3.51", "--expected_output=0")
    assert "[FAILED] result[2]: f32 values differ\n  expected: 3.51\n  actual: 3.5\n" in result.stdout
    assert "[FAILED] result[3]: f64 values differ\n  expected: 0\n  actual: NAN\n" in result.stdout
    # Stored and compared.
    path = tmp_path / "x.bin"
    targets = (f"--output=@{path}", "--output=-", "--output=", "--output=")
    assert good(kit, *inputs, *expected, *targets) == f"EXEC @numbers\ni64=2\n{SUCCESS}"
    assert path.read_bytes() == np.int32(1).tobytes()


@pytest.mark.parametrize(
    ("tolerance", "holds"),
    [
        ((), False),
        (("--atol=0.02",), True),
        (("--expected_f32_threshold=0.02",), True),
        (("--expected_f16_threshold=0.02",), False),
        (("--expected_rtol=0.01",), True),
        (("--rtol=0.01",), True),
        (("--rtol=0.01", "--equality_mode=exact"), False),
    ],
)
def test_tolerances(kit: Path, tolerance: tuple[str, ...], holds: bool) -> None:
    inputs = ("--function=numbers", "--input=1", "--input=2", "--input=3.5", "--input=4")
    expected = ("(ignored)", "(ignored)", "3.51", "4")
    result = run(kit, *inputs, *(f"--expected_output={text}" for text in expected), *tolerance)
    assert result.exit_code == (0 if holds else 1)


def test_outputs_that_cannot_be_written_keep_no_other_back(kit: Path, tmp_path: Path) -> None:
    inputs = ("--function=numbers", "--input=1", "--input=2", "--input=3.5", "--input=4.25")
    targets = ("--output=@/nonexistent/x.npy", f"--output=@{tmp_path}", "--output=-", f"--output=@{tmp_path}/x.npy")
    result = run(kit, *inputs, *targets)
    assert (result.exit_code, result.stdout) == (1, "EXEC @numbers\nf32=3.5\n")
    assert "error: --output 0: /nonexistent/x.npy cannot be written: there is no folder" in result.stderr
    assert f"error: --output 1: {tmp_path} cannot be written: " in result.stderr
    assert np.load(tmp_path / "x.npy") == 4.25


def test_a_stdout_that_cannot_be_written_keeps_no_file_back(
    kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    from pumice.tools.run import module as run_module

    monkeypatch.setattr(sys, "stdout", Full())
    path = tmp_path / "x.bin"
    with pytest.raises(Exception, match="the results cannot be printed"):
        run_module.run_module(
            run_module.ModuleRun(modules=[str(kit)], function="add", inputs=["1", "2"], outputs=[f"@{path}"])
        )
    assert path.read_bytes() == np.int32(3).tobytes()


# -- tensors -----------------------------------------------------------------------------------------


@device
@pytest.mark.usefixtures("driver")
class TestTensors:
    def test_inputs_of_every_form(self, kit: Path, tmp_path: Path) -> None:
        array = np.array([[1, 2], [3, 4]], np.float32)
        np.save(tmp_path / "a.npy", array)
        array.tofile(tmp_path / "a.bin")
        expected = "EXEC @echo\nresult[0]: hal.buffer_view\n2x2xf32=[1 2][3 4]\n"
        for text in (
            "2x2xf32=1,2,3,4",
            "2x2xf32=[1 2][3 4]",
            f"@{tmp_path}/a.npy",
            f"*{tmp_path}/a.npy",
            f"2x2xf32=@{tmp_path}/a.bin",
            "1 2 3 4",
            "[[1,2],[3,4]]",
        ):
            result = run(kit, "--function=echo", f"--input={text}", "--device=vulkan")
            assert (result.exit_code, result.stdout) == (0, expected), (text, result.stderr)
            assert re.fullmatch(r"ran on .+ \(cpu, .+\)\n", result.stderr)
        assert "=[7 7][7 7]\n" in good(kit, "--function=echo", "--input=7")
        assert "=[0 0][0 0]\n" in good(kit, "--function=echo", "--input=2x2xf32")

    @pytest.mark.parametrize(
        "value",
        ["3xsi8=1 -2 3", "3xui8=1 2 255", "2xf16=1.5 INF", "2xbf16=1 2", "3xi1=01 00 01", "5xi4=1 2 3 4 5", "f64=0.1",
         "2xf8E4M3FN=1 2", "1x0x3xf32=[]", "cf64=0000803F00000040", "2x1xi64=[-5][6]"],
    )  # fmt: skip
    def test_element_types(self, kit: Path, value: str) -> None:
        assert good(kit, "--function=any", f"--input={value}") == f"EXEC @any\nresult[0]: hal.buffer_view\n{value}\n"

    def test_what_is_declared_is_held_to(self, kit: Path) -> None:
        function = (kit, "--function=echo")
        wrong(2, r"--input 0 \(4xf32\): .*expected shape \(2, 2\)", *function, "--input=4xf32")
        wrong(2, r"--input 0 \(2x2xi32=1\): .*f32", *function, "--input=2x2xi32=1")
        wrong(2, r"--input 0 \(\(null\)\): .*expected an array", *function, "--input=(null)")
        wrong(2, r"--input 0 \(&2x2xf32\): ", *function, "--input=&2x2xf32")
        assert wrong(1, r".*a\.npy", *function, "--input=@/nonexistent/a.npy").stdout == ""
        wrong(1, r".*a\.bin", *function, "--input=2x2xf32=@/nonexistent/a.bin")
        wrong(1, r".*(memory|fit)", kit, "--function=any", "--input=1000000000000000xf32")

    def test_buffers_and_null(self, kit: Path, tmp_path: Path) -> None:
        for text in ("&2xf32=1,2", "2xf32=1,2"):
            assert (
                good(kit, "--function=storage", f"--input={text}", f"--output=@{tmp_path}/b.npy") == "EXEC @storage\n"
            )
            stored = np.load(tmp_path / "b.npy")
            assert stored.dtype == np.int8 and stored.tobytes() == np.float32([1, 2]).tobytes()
        assert good(kit, "--function=storage", "--input=&2xf32") == (
            "EXEC @storage\nresult[0]: hal.buffer\n(no printer)\n"
        )
        assert good(kit, "--function=any", "--input=(null)") == "EXEC @any\nresult[0]: (null)\n"
        good(kit, "--function=any", "--input=(null)", f"--output=@{tmp_path}/n.npy")
        assert np.load(tmp_path / "n.npy").shape == (0,)

    def test_lists(self, kit: Path, tmp_path: Path) -> None:
        assert good(kit, "--function=list", "--input=2xi16=3") == (
            "EXEC @list\nresult[0]: vm.list\nchild_list[0]: i32=7\nchild_list[1]: f32=2.5\n"
            "child_list[2]: hal.buffer_view\n"
            "2xi16=3 3\nchild_list[3]: (null)\n\n"
        )
        wrong(
            1, "--output 0: a result of type vm.list has no form in files",
            kit, "--function=list", "--input=(null)", f"--output=@{tmp_path}/l.npy",
        )  # fmt: skip

    def test_stored_tensors(self, kit: Path, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        array = rng.random((3, 5, 7), np.float32)
        np.save(tmp_path / "a.npy", array)
        for name in ("b.npy", "b.bin"):
            good(kit, "--function=any", f"--input=@{tmp_path}/a.npy", f"--output=@{tmp_path}/{name}")
        np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), array)
        assert (tmp_path / "b.bin").read_bytes() == array.tobytes()
        bf16 = "2x2xbf16=[1 2][3 4]"
        good(kit, "--function=any", f"--input={bf16}", f"--output=@{tmp_path}/c.bin")
        assert (tmp_path / "c.bin").read_bytes() == np.array([1, 2, 3, 4], ml_dtypes.bfloat16).tobytes()

    def test_one_file_for_several_arguments(self, folder: Path, tmp_path: Path) -> None:
        pair = folder / "pair.vmfb"
        pair.write_bytes(
            write_module(
                assemble(
                    "vm.module @pair version 0\nvm.export @swap\nvm.func @swap(%r0: !vm.ref<?>, %r1: !vm.ref<?>) -> "
                    "(!vm.ref<?>, !vm.ref<?>) {\n^bb0:\n  vm.return %r1, %r0\n}\n"
                )
            )
        )
        path = tmp_path / "two.npy"
        with path.open("wb") as file:
            np.save(file, np.float32([1, 2]))
            np.save(file, np.float32([3, 4]))
        view = "hal.buffer_view\n2xf32="
        swapped = f"EXEC @swap\nresult[0]: {view}3 4\nresult[1]: {view}1 2\n"
        assert good(pair, f"--input=@{path}", f"--input=+{path}") == swapped
        assert good(pair, f"--input=*{path}") == swapped
        assert good(
            pair, f"--input=@{path}", f"--input=@{path}", f"--expected_output=@{path}", "--expected_output=2xf32=1,2"
        )
        wrong(
            2,
            r"pair\.swap.* takes 2 --input values, got 3",
            pair,
            f"--input=@{path}",
            f"--input=*{path}",
            "--input=f32=1",
        )

    def test_elements_that_are_cut_short(self, kit: Path) -> None:
        text = ("--function=any", f"--input=10xi32={','.join(map(str, range(10)))}")
        assert "\n10xi32=0 1 2...\n" in good(kit, *text, "--output_max_element_count=3")
        assert "\n10xi32=0 1 2 3 4 5 6 7 8 9\n" in good(kit, *text, "--output-max-element-count=-1")
        assert good(kit, "--function=any", "--input=1025xi8=1").count(" 1") == 1023

    def test_expected_tensors(self, kit: Path) -> None:
        call = (kit, "--function=both", "--input=3xf32=1,nan,inf", "--input=4")
        rest = ("--expected_output=4", "--expected_output=(null)")
        assert good(*call, "--expected_output=3xf32=1.00005,nan,inf", *rest) == f"EXEC @both\n{SUCCESS}"
        wrong(1, "1 of 3", *call, "--expected_output=3xf32=1.00005,nan,inf", *rest, "--equality_mode=exact")
        result = wrong(1, "1 of 3", *call, "--expected_output=3xf32=1,nan,-inf", *rest)
        assert result.stdout == (
            "EXEC @both\n[FAILED] result[0]: element at index 2 (INF) does not match the expected (-INF); "
            "expected that the view is equal to contents of a view of 3xf32\n"
            "  expected:\n3xf32=1 NAN -INF\n  actual:\n3xf32=1 NAN INF\n"
        )
        assert (
            "metadata is 3xf32; expected that the view matches 3xi32;"
            in run(*call, "--expected_output=3xi32=1", *rest).stdout
        )
        mixed = run(*call, "--expected_output=(ignored)", "--expected_output=4", "--expected_output=f32=1")
        assert mixed.exit_code == 1 and "variant types mismatch; expected hal.buffer_view but got empty" in mixed.stdout

    def test_several_devices(self, kit: Path) -> None:
        printed = good(kit, "--function=echo", "--input=1", "--device=vulkan", "--device=vulkan://0")
        assert printed.startswith("EXEC @echo\n")

    def test_times_and_statistics(self, kit: Path) -> None:
        result = run(kit, "--function=any", "--input=4xf32=1", "--time", "--print_statistics")
        assert (result.exit_code, result.stdout) == (0, "EXEC @any\nresult[0]: hal.buffer_view\n4xf32=1 1 1 1\n")
        for line in (r"load: +[\d.]+ .*s host: .*", r"first call: +[\d.]+ .*s host: .*", r"warm call: .*median of 20"):
            assert re.search(f"^{line}$", result.stderr, re.MULTILINE), result.stderr
        assert re.search(r"^memory of .*: \d+ bytes at most", result.stderr, re.MULTILINE)

    def test_devices_that_are_not_there(self, kit: Path) -> None:
        wrong(1, "no device is 'vulkan://4096'", kit, "--function=nothing", "--device=vulkan://4096")


def test_parameters(kit: Path, tmp_path: Path) -> None:
    ParameterIndex.from_arrays({"w": np.float32([1])}).save(tmp_path / "a.irpa")
    call = (kit, "--function=nothing")
    assert good(*call, f"--parameters=model={tmp_path}/a.irpa", f"--parameters={tmp_path}/a.irpa") == "EXEC @nothing\n"
    wrong(
        1, "two parameters of one scope are named 'w'",
        *call, f"--parameters=m={tmp_path}/a.irpa", f"--parameters=m={tmp_path}/a.irpa",
    )  # fmt: skip
    wrong(1, "no such file: /nonexistent.irpa", *call, "--parameters=m=/nonexistent.irpa")
    wrong(1, "expected .*mul.spv.* to be an .irpa", *call, f"--parameters={shaders.path('mul')}")


def test_every_flag_of_the_peer_has_an_answer() -> None:
    """What iree-run-module 3.13 has, ``pumice run`` takes too or says something about."""
    taken = {parameter for option in main.get_command(None, "run").params for parameter in option.opts}  # type: ignore[arg-type,union-attr]
    for flag in ("--device", "--module", "--function", "--input", "--output", "--expected_output", "--parameters"):
        assert flag in taken and advice(flag) is None
    for flag in ("--task_worker_spin_us=1", "--list_devices", "--hip_tracing=1", "--trace_execution", "--agents_md"):
        assert flag.partition("=")[0] not in taken
        assert "is a flag of iree-run-module that pumice does not have" in str(advice(flag))
    assert advice("--bogus") is None


# -- the peer ----------------------------------------------------------------------------------------

SOURCE = """
func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @less(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xi1> {
  %0 = arith.cmpf olt, %a, %b : tensor<2x3xf32>
  return %0 : tensor<2x3xi1>
}
func.func @double(%a: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.addi %a, %a : tensor<?xi32>
  return %0 : tensor<?xi32>
}
func.func @many(%a: tensor<2x2xf32>, %n: i32, %x: f64) -> (tensor<2x2xf32>, i32, f64, tensor<f32>) {
  %zero = arith.constant 0 : index
  %0 = arith.addf %a, %a : tensor<2x2xf32>
  %1 = tensor.extract %a[%zero, %zero] : tensor<2x2xf32>
  %2 = tensor.from_elements %1 : tensor<f32>
  return %0, %n, %x, %2 : tensor<2x2xf32>, i32, f64, tensor<f32>
}
func.func @store(%a: tensor<4xf32>, %storage: !hal.buffer {iree.abi.output = 0 : index}) -> tensor<4xf32> {
  %0 = arith.mulf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @view(%a: !hal.buffer_view) -> !hal.buffer_view {
  return %a : !hal.buffer_view
}
"""

PEER_CALLS: list[Sequence[str]] = [
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2"),
    ("--function=mul", "--input=4xf32=1,2,3,nan", "--input=4xf32=-inf"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--output=-"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--output="),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--expected_output=4xf32=2,4,6,8"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--expected_output=4xf32=2,4,7,8.5"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--expected_output=2x2xf32=2,4,6,8"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--expected_output=4xi32=2,4,6,8"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--expected_output=(ignored)"),
    (
        "--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2",
        "--expected_output=4xf32=2,4,6,8.001", "--equality_mode=exact",
    ),
    (
        "--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2",
        "--expected_output=4xf32=2,4,6,8.001", "--expected_f32_threshold=0.1",
    ),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--output_max_element_count=2"),
    ("--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--output_max_element_count=0"),
    ("--function=less", "--input=2x3xf32=1,2,3,4,5,6", "--input=2x3xf32=3"),
    ("--function=double", "--input=5xi32=1,-2,3,0x10,5"),
    ("--function=double", "--input=2000xi32=7"),
    ("--function=many", "--input=2x2xf32=[1 2][3 4]", "--input=-5", "--input=0.1"),
    (
        "--function=many", "--input=2x2xf32=1e-20", "--input=(null)", "--input=1e20", "--output=-",
        "--output=-", "--output=-", "--output=-",
    ),
    ("--function=store", "--input=4xf32=1,2,3,4", "--input=&4xf32"),
    ("--function=view", "--input=3x1xui8=1,2,255"),
    ("--function=view", "--input=(null)"),
    ("--function=view", "--input=2x2x2xbf16=1,nan,inf,-inf,0.3,3e38,1,2"),
]  # fmt: skip


@pytest.fixture(scope="session")
def compiled() -> dict[str, Path]:
    """``SOURCE`` compiled, with synchronous calls and with asynchronous ones."""
    vulkan = ["--iree-hal-target-backends=vulkan-spirv"]
    quick = SOURCE.partition("func.func @less")[0]
    return {
        "sync": compile_module(SOURCE, device=vulkan, name="source.mlir"),
        "async": compile_module(quick, "--iree-execution-model=async-external", device=vulkan, name="source.mlir"),
    }


def beside(*arguments: object) -> Result:
    """The result of ``pumice run``, whose stdout and success are those of iree-run-module."""
    words = list(map(str, arguments))
    peer = run_peer("iree-run-module", "--device=vulkan", *words, check=False)
    result = run("--device=vulkan", *words)
    assert result.stdout == peer.stdout, (result.stderr, peer.stderr)
    assert result.exit_code == peer.returncode
    return result


@pytest.mark.sample(8)
@pytest.mark.peer
@device
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("arguments", PEER_CALLS, ids=" ".join)
def test_output_is_that_of_the_peer(compiled: dict[str, Path], arguments: Sequence[str]) -> None:
    beside(f"--module={compiled['sync']}", *arguments)


@pytest.mark.peer
@device
@pytest.mark.usefixtures("driver")
def test_asynchronous_functions(compiled: dict[str, Path]) -> None:
    call = (f"--module={compiled['async']}", "--input=4xf32=1,2,3,4", "--input=4xf32=2")
    assert beside(*call).stdout == "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=2 4 6 8\n"
    assert good(*call, "--timeout=100", "--time", "--expected_output=4xf32=2,4,6,8") == f"EXEC @mul\n{SUCCESS}"


@pytest.mark.peer
@device
@pytest.mark.usefixtures("driver")
def test_stored_outputs_are_those_of_the_peer(compiled: dict[str, Path], tmp_path: Path) -> None:
    call = (f"--module={compiled['sync']}", "--function=many", "--input=2x2xf32=1,2,3,4", "--input=7", "--input=2.5")
    contents = []
    for who in ("peer", "pumice"):
        path = tmp_path / who
        targets = (f"--output=@{path}.npy", f"--output=+{path}.npy", f"--output=@{path}.bin", f"--output=+{path}.bin")
        if who == "peer":
            run_peer("iree-run-module", "--device=vulkan", *call, *targets)
        else:
            good(*call, *targets)
        with Path(f"{path}.npy").open("rb") as file:
            arrays = [np.load(file), np.load(file)]
        contents.append(([(a.dtype, a.shape, a.tolist()) for a in arrays], Path(f"{path}.bin").read_bytes()))
    assert contents[0] == contents[1]


@pytest.mark.peer
@pytest.mark.parametrize(
    "arguments",
    [
        ("--function=numbers", "--input=1", f"--input={2**40}", "--input=0.1", "--input=1e300"),
        ("--function=numbers", "--input=-1", "--input=(null)", "--input=inf", "--input=-0.0"),
        ("--function=count",),
        ("--function=nothing",),
        ("--function=list", "--input=(null)"),
        ("--function=fails",),
    ],
    ids=" ".join,
)
def test_assembled_programs_print_as_with_the_peer(kit: Path, arguments: Sequence[str]) -> None:
    peer = run_peer("iree-run-module", f"--module={kit}", *arguments, check=False)
    result = run(f"--module={kit}", *arguments)
    assert (result.stdout, result.exit_code) == (peer.stdout, peer.returncode), (result.stderr, peer.stderr)


@pytest.mark.parametrize("device", ["vulkan", "reference"])
def test_storages_that_are_left_out_are_results(device: str, tmp_path: Path) -> None:
    (tmp_path / "f.vmfb").write_bytes(
        pumice.compile(
            "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.add %a, %a : tensor<4xf32>\n"
            "  return %0 : tensor<4xf32>\n}",
            targets=("vulkan", "reference"),
            calling_convention="outs",
        )
    )
    given = ["run", str(tmp_path / "f.vmfb"), f"--device={device}", "--input=4xf32=1,2,3,4"]
    result = CliRunner().invoke(main, given)
    assert (result.exit_code, result.stdout) == (0, "EXEC @f\nresult[0]: hal.buffer_view\n4xf32=2 4 6 8\n")
    assert CliRunner().invoke(main, [*given, "--input=4xf32=0"]).stdout == "EXEC @f\n"
    assert CliRunner().invoke(main, [*given, "--function=f$async", "--expected_output=4xf32=2,4,6,8"]).exit_code == 0
    wrong = CliRunner().invoke(main, [*given, "--input=4xf32=0", "--input=4xf32=0"])
    assert wrong.exit_code == 2 and "takes 1 --input value, or 2 with storages, got 3" in wrong.stderr
