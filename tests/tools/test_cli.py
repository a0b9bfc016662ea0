"""The program as a whole: exit statuses, what goes to which stream, and that errors come without tracebacks."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import pumice
from pumice.base.terminal import printable
from pumice.tools import cli
from pumice.tools.inspect import devices

PROGRAM = "from pumice.tools.cli import main; main(prog_name='pumice')"
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes as POSIX has them")


# Which write first notices a closed or full stream depends on the buffering.
buffering = pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    unwanted = ("PUMICE_DEBUG", "PYTHONUNBUFFERED")
    return {**{k: v for k, v in os.environ.items() if k not in unwanted}, **(extra or {})}


def program(
    arguments: Sequence[str | Path], extra: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env=environment(extra),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_version() -> None:
    result = CliRunner().invoke(cli.main, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"pumice {pumice.__version__}\n")


@pytest.mark.parametrize("size", ["\u00b2", "9" * 5000, "x", "", "80"])
def test_any_size_of_the_terminal_is_taken(size: str) -> None:
    result = CliRunner().invoke(cli.main, ["study", "list"], env={"COLUMNS": size, "LINES": size})
    assert (result.exit_code, "batch-depth" in result.stdout) == (0, True)


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(cli.main, ["--help"])
    assert result.exit_code == 0
    for command in ("devices", "info", "run"):
        assert f"\n  {command} " in result.stdout


def test_no_command_is_wrong_usage_and_shows_help_on_stderr() -> None:
    result = CliRunner().invoke(cli.main, [])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["walk"], "No such command"),
        (["rnu"], "No such command 'rnu'. Did you mean run?"),
        (["--bogus"], "No such option"),
        (["run"], "Missing argument"),
        (["run", "x.spv", "--subgroup-size", "0"], "subgroup-size"),
        (["devices", "more"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli.main, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "--help`" in result.stderr


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes ``pumice devices`` raise."""

    def install(error: BaseException) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr(devices, "devices", command)

    return install


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (pumice.NotFoundError("no such thing", location="here:1"), 1, "error: here:1: no such thing\n"),
        (pumice.InternalError("bad", vk_result="VK_ERROR_UNKNOWN"), 1, "error: bad [VK_ERROR_UNKNOWN]\n"),
        (FileNotFoundError(2, "No such file or directory", "x.bin"), 1, "error: x.bin: No such file or directory\n"),
        (MemoryError(), 1, "error: out of memory\n"),
        (click.ClickException("no"), 1, "error: no\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_errors_become_messages(
    broken: Callable[[BaseException], None], error: BaseException, status: int, message: str
) -> None:
    broken(error)
    result = CliRunner().invoke(cli.main, ["devices"])
    assert (result.exit_code, result.stdout, result.stderr) == (status, "", message)


def test_a_bug_is_told_apart_and_shows_its_traceback_when_asked(
    broken: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(ZeroDivisionError("oops"))
    monkeypatch.delenv("PUMICE_DEBUG", raising=False)
    result = CliRunner().invoke(cli.main, ["devices"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: internal error") and "oops" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("PUMICE_DEBUG", "1")
    result = CliRunner().invoke(cli.main, ["devices"])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr and "ZeroDivisionError: oops" in result.stderr


def test_messages_do_not_steer_the_terminal(broken: Callable[[BaseException], None]) -> None:
    broken(pumice.NotFoundError("\x1b[31mred\nnext line \udc80"))
    result = CliRunner().invoke(cli.main, ["devices"])
    assert result.stderr == "error: \\x1b[31mred\nnext line \\udc80\n"
    assert printable("plain äöü") == "plain äöü"


LONG = "9" * 5000


@pytest.mark.sample(13)
@pytest.mark.vulkan
@pytest.mark.parametrize(
    "arguments",
    [
        ["--device", LONG],
        ["--groups", LONG],
        ["--binding", f"0={LONG}xf32"],
        ["--binding", f"0={LONG}"],
        ["--binding", f"0=4x{LONG}=1"],
        ["--binding", f"0=4xf32={LONG}x"],
        ["--binding", f"0=4xf32=@{LONG}"],
        ["--binding", f"0=@{LONG}"],
        ["--binding", f"0=@{LONG}.npy"],
        ["--binding", f"{LONG}=4xf32"],
        ["--binding", LONG],
        ["--push", LONG],
        ["--push", f"{LONG}=1"],
        ["--push", f"i32={LONG}"],
        ["--push", f"@{LONG}"],
        ["--spec", LONG],
        ["--spec", f"{LONG}=1"],
        ["--define", f"1{LONG}"],
        ["--output", LONG],
        ["--output", f"0=@{LONG}"],
        ["--output", f"0=@x/{LONG}"],
        ["--entry", LONG],
        ["--expect", f"0={LONG}"],
        ["--parameters", LONG],
        ["--parameters", f"a={LONG}"],
        ["--profile-trace", LONG],
        ["--repeat", LONG],
        ["--timeout", LONG],
        ["--input", LONG],
        ["--function", LONG],
        [f"--{LONG}"],
        [LONG],
    ],
    ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"),
)
def test_messages_repeat_no_long_argument(arguments: list[str], shader_path: Path) -> None:
    kernel = shader_path / "mul.spv"
    for command in ("run", "bench", "info", "dump"):
        for file in ([kernel], []):
            result = CliRunner().invoke(cli.main, [command, *map(str, file), *arguments])
            assert result.exit_code in (1, 2)
            assert len(result.stderr) < 1500, (command, result.stderr[:300])


def test_messages_repeat_no_long_header_of_a_file(tmp_path: Path, shader_path: Path) -> None:
    for index, header in enumerate(
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (" + LONG + ",)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "-1, " * 3000 + ")}",
            "{'descr': '" + LONG + "', 'fortran_order': False, 'shape': (1,)}",
            "{'" + LONG + "': 1}",
        )
    ):
        path = tmp_path / f"{index}.npy"
        data = header.encode() + b"\n"
        path.write_bytes(b"\x93NUMPY\x02\x00" + len(data).to_bytes(4, "little") + data)
        result = CliRunner().invoke(cli.main, ["run", str(shader_path / "mul.spv"), "--binding", f"0=@{path}"])
        assert result.exit_code in (1, 2)
        assert len(result.stderr) < 1500, result.stderr[:300]


def test_help_and_version_load_neither_vulkan_nor_rich() -> None:
    # The root package decides about NumPy; the commands themselves import nothing of weight.
    script = (
        "import sys, pumice, pumice.status, pumice.base.switches, pumice.base.terminal; before = set(sys.modules)\n"
        "from pumice.tools.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before} & {'rich', 'numpy', 'vulkan'}),"
        " [m for m in set(sys.modules) - before if m.startswith('pumice.') and not m.startswith('pumice.tools')],"
        " [m for m in sys.modules if m.startswith('pumice.tools.') and m.count('.') > 2])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[] [] []"


@pytest.mark.slow
def test_no_loader_says_what_to_install() -> None:
    for command in (["devices"], ["run", Path(pumice.__file__).parent / "shaders/mul.spv"]):
        done = program(command, {"PUMICE_VULKAN_LIBRARY": "/nonexistent"})
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: no Vulkan loader")
        assert "Install" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_library_that_is_not_vulkan_is_told_apart() -> None:
    # Any native library that Python itself comes with.
    import _ctypes

    done = program(["devices"], {"PUMICE_VULKAN_LIBRARY": str(_ctypes.__file__)})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no Vulkan loader")
    assert "no Vulkan library" in done.stderr and "unset" in done.stderr


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_no_driver_says_what_to_install(tmp_path: Path) -> None:
    none = str(tmp_path / "none.json")
    done = program(["devices"], {"VK_DRIVER_FILES": none, "VK_ICD_FILENAMES": none})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ") and "Install a Vulkan driver" in done.stderr
    assert f"VK_DRIVER_FILES={none} hides all other drivers: unset it" in done.stderr


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_process_keeps_results_apart_from_the_rest(shader_path: Path) -> None:
    done = program(
        ["run", shader_path / "mul.spv", "-b", "0=4xf32=1,2,3,4", "-b", "1=4xf32=2,3,4,5", "-b", "2=4xf32", "--time"]
    )
    assert (done.returncode, done.stdout) == (0, "binding[2]: 4xf32=2 6 12 20\n")
    assert "ran on " in done.stderr and "dispatch:" in done.stderr


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_validation_can_be_turned_on(shader_path: Path) -> None:
    arguments = ["run", shader_path / "mul.spv", "-b", "0=f32=3", "-b", "1=f32=4", "-b", "2=f32"]
    done = program([*arguments, "--validation"], {"PUMICE_VALIDATION": "0"})
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout) == (0, "binding[2]: f32=12\n")
    # Off again, although the environment turns them on and would not find them.
    done = program([*arguments, "--no-validation"], {"PUMICE_VALIDATION": "1", "VK_LAYER_PATH": "/nonexistent"})
    assert (done.returncode, done.stdout) == (0, "binding[2]: f32=12\n")


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_json_of_the_devices_from_a_process() -> None:
    done = program(["devices", "--json"])
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)


def open_for_reader(pipe: Path, child: subprocess.Popen[str]) -> int:
    """The named pipe's end to write, once the child has opened the other one; fails if the child ends or takes long."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody has opened it to read
                raise
        time.sleep(0.01)
    child.kill()
    pytest.fail(f"the program did not open the file: status {child.poll()}, {child.communicate()}")


@pytest.mark.slow
@posix
def test_interrupt_leaves_without_a_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "kernel.comp"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "info", str(pipe)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        writer = open_for_reader(pipe, child)
        try:
            # The program has opened the file, and waits to read from it.
            time.sleep(0.1)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            os.close(writer)
    finally:
        child.kill()
        child.communicate()
    assert (child.returncode, out, err) == (130, "", "\n")


PRINTING = [["--help"], ["--version"], ["run", "--help"], ["info", "SHADER"], ["info", "SHADER", "--json"]]


@pytest.mark.sample(4)
@pytest.mark.slow
@posix
@buffering
@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_reader_that_is_gone_ends_it_quietly(arguments: list[str], unbuffered: str, shader_path: Path) -> None:
    arguments = [str(shader_path / "mul.spv") if a == "SHADER" else a for a in arguments]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=environment({"PYTHONUNBUFFERED": unbuffered}),
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def redirected(
    redirections: str, arguments: Sequence[str | Path], extra: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs the program behind a shell's redirections."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", *command],
        env=environment(extra),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that is always full is Linux's")
UNWRITABLE = [">&-", ">&- <&-", pytest.param(">/dev/full", marks=full)]


@pytest.mark.sample(6)
@pytest.mark.slow
@posix
@buffering
@pytest.mark.parametrize("redirection", UNWRITABLE)
@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_stdout_that_cannot_be_written_is_an_error(
    arguments: list[str], redirection: str, unbuffered: str, shader_path: Path
) -> None:
    arguments = [str(shader_path / "mul.spv") if a == "SHADER" else a for a in arguments]
    done = redirected(redirection, arguments, {"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr.startswith("error: the results cannot be printed on stdout: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@posix
@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=full)])
def test_a_stderr_that_cannot_be_written_changes_no_status(redirection: str, shader_path: Path) -> None:
    for arguments, status in ((["bogus"], 2), (["info", "/nonexistent.spv"], 1), ([], 2)):
        done = redirected(redirection, arguments, {})
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    done = redirected(redirection, ["info", shader_path / "mul.spv", "--json"], {})
    assert done.returncode == 0 and json.loads(done.stdout)


@pytest.mark.sample(1)
@posix
@buffering
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_run_loses_no_result_to_a_stream(unbuffered: str, shader_path: Path, tmp_path: Path) -> None:
    extra = {"PYTHONUNBUFFERED": unbuffered}
    run = ["run", shader_path / "mul.spv", "-b", "0=f32=3", "-b", "1=f32=4", "-b", "2=f32"]
    unwritable = ["&-", "/dev/full"] if Path("/dev/full").exists() else ["&-"]
    for place in unwritable:
        done = redirected(f"2>{place}", [*run, "--time"], extra)
        assert (done.returncode, done.stdout, done.stderr) == (0, "binding[2]: f32=12\n", "")
        done = redirected(f">{place}", [*run, "-o", f"2=@{tmp_path}/c.bin"], extra)
        assert done.returncode == 0, done.stderr
        (tmp_path / "c.bin").unlink()
        done = redirected(f">{place}", [*run, "-o", "2=-", "-o", f"2=@{tmp_path}/c.bin"], extra)
        assert done.returncode == 1 and "\nerror: the results cannot be printed" in done.stderr
        assert (tmp_path / "c.bin").read_bytes() == np.float32(12).tobytes()


@pytest.mark.slow
def test_an_encoding_without_the_characters_gets_escapes(tmp_path: Path, shader_path: Path) -> None:
    code = (shader_path / "mul.spv").read_bytes()
    path = tmp_path / "kernel.spv"
    path.write_bytes(code.replace(b"Product\0", "Pröduc".encode() + b"\0", 1))
    done = program(["info", path], {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Pr\\xf6duc" in done.stdout
