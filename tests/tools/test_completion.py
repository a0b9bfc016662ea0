"""Completion: the scripts where shells look for them, what they are answered, and Tab in the shells of this machine."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.tools.cli import main

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shells are POSIX's")
PLACES = {
    "bash": ".local/share/bash-completion/completions/pumice",
    "zsh": ".local/share/zsh/site-functions/_pumice",
    "fish": ".config/fish/completions/pumice.fish",
}


def has_new_bash() -> bool:
    """Whether completion may be installed for the bash on PATH; that of macOS is too old."""
    command = ["bash", "--norc", "-c", "((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404))"]
    return shutil.which("bash") is not None and subprocess.run(command, check=False).returncode == 0


needs_bash = pytest.mark.skipif(not has_new_bash(), reason="needs bash 4.4 or later on PATH")
INSTALLED = [pytest.param("bash", marks=needs_bash), "zsh", "fish"]


def install(home: Path | str, *shell: str, **environment: str | None) -> Result:
    clean = {"HOME": str(home), "XDG_DATA_HOME": None, "XDG_CONFIG_HOME": None, "SHELL": None}
    return CliRunner().invoke(main, ["--install-completion", *shell], env={**clean, **environment})


@pytest.mark.parametrize("shell", INSTALLED)
def test_the_script_is_where_the_shell_looks(shell: str, tmp_path: Path) -> None:
    path = tmp_path / PLACES[shell]
    result = install(tmp_path, shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"wrote {path}\n")
    script = path.read_bytes()
    assert b"_PUMICE_COMPLETE" in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", path], check=True)
    # Once more, by the name of the user's shell.
    result = install(tmp_path, SHELL=f"/usr/local/bin/{shell}")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, f"unchanged: {path}")
    assert path.read_bytes() == script


@needs_bash
def test_the_folders_are_those_of_xdg(tmp_path: Path) -> None:
    for shell, variable, path in (
        ("bash", "XDG_DATA_HOME", "bash-completion/completions/pumice"),
        ("zsh", "XDG_DATA_HOME", "zsh/site-functions/_pumice"),
        ("fish", "XDG_CONFIG_HOME", "fish/completions/pumice.fish"),
    ):
        assert install("/nowhere", shell, **{variable: str(tmp_path)}).stdout.startswith(f"wrote {tmp_path}/{path}\n")
    assert install(tmp_path, "fish", XDG_CONFIG_HOME="relative").stdout.startswith(f"wrote {tmp_path}/.config/")


def test_a_file_that_holds_something_else_stays(tmp_path: Path) -> None:
    path = tmp_path / PLACES["fish"]
    path.parent.mkdir(parents=True)
    path.write_text("complete -c pumice -a mine\n")
    result = install(tmp_path, "fish")
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(path) in result.stderr and "move it away" in result.stderr
    assert path.read_text() == "complete -c pumice -a mine\n"


def test_the_script_of_another_version_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / PLACES["fish"]
    path.parent.mkdir(parents=True)
    path.write_text("env _PUMICE_COMPLETE=fish_complete pumice\n")
    result = install(tmp_path, "fish")
    assert result.stdout.startswith(f"replaced {path}\n") and result.exit_code == 0
    assert install(tmp_path, "fish").stdout.startswith(f"unchanged: {path}\n")


def test_asking_for_help_installs_nothing(tmp_path: Path) -> None:
    result = install(tmp_path, "--help", SHELL="/bin/fish")
    assert result.stdout.startswith("Usage: ") and not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("shell", "login", "status", "message"),
    [
        (["tcsh"], None, 2, "expected a shell of bash, zsh, fish; got 'tcsh'"),
        ([], "/bin/dash", 2, "$SHELL is '/bin/dash'"),
        ([], None, 2, "$SHELL is not set"),
        ([], "", 2, "$SHELL is not set"),
    ],
)
def test_other_shells_are_wrong_usage(
    shell: list[str], login: str | None, status: int, message: str, tmp_path: Path
) -> None:
    result = install(tmp_path, *shell, SHELL=login)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr and "bash, zsh, fish" in result.stderr
    assert not any(tmp_path.iterdir())


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for home, message in ((file, "Not a directory"), ("", "there is no home folder"), ("here", "no home folder")):
        result = install(home, "fish")
        assert (result.exit_code, result.stdout) == (1, ""), home
        assert message in result.stderr and "internal error" not in result.stderr
    (tmp_path / PLACES["fish"]).mkdir(parents=True)
    result = install(tmp_path, "fish")
    assert result.exit_code == 1 and "Is a directory" in result.stderr


@pytest.mark.parametrize(("printed", "message"), [("3 2", "the one on PATH is 3.2"), ("", "no bash that runs")])
def test_a_bash_without_what_the_script_needs(printed: str, message: str, tmp_path: Path) -> None:
    bash = tmp_path / "bin" / "bash"
    bash.parent.mkdir()
    bash.write_text(f"#!/bin/sh\necho {printed}\n")
    bash.chmod(0o755)
    result = install(tmp_path, "bash", PATH=str(bash.parent))
    assert result.exit_code == 1
    assert message in result.stderr
    assert not (tmp_path / PLACES["bash"]).exists()


def answers(shell: str, words: str, index: int | None = None, **environment: str) -> list[str]:
    """What a shell is told: the completions, ``file`` for one of its own."""
    split = words.split(" ")
    sent = {"COMP_WORDS": words, "COMP_CWORD": str(len(split) - 1 if index is None else index)}
    if shell == "fish":
        sent = {"COMP_WORDS": words, "COMP_CWORD": split[-1]}
    asked = {**sent, **environment, "_PUMICE_COMPLETE": f"{shell}_complete"}
    result = CliRunner().invoke(main, [], env=asked)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines() if result.stdout != "\n" else []
    if shell == "zsh":
        return [value if kind == "plain" else kind for kind, value in zip(lines[::3], lines[1::3], strict=True)]
    pairs = [line.partition("\t")[0].split(",", 1) for line in lines]
    return [value if kind == "plain" else kind for kind, value in pairs]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pumice vend", ["vendor-driver"]),
        ("pumice run", ["run", "run-checks"]),
        ("pumice run shaders/mu", ["file"]),
        ("pumice dump exam", ["file"]),
        ("pumice study run sem", ["semaphore-wake"]),
        ("pumice study run mine", ["file"]),
        ("pumice --install-completion f", ["fish"]),
        ("pumice run x --device la", ["lavapipe"]),
        ("pumice run x --device=la", ["--device=lavapipe"]),
        ("pumice run x --device ref", ["reference"]),
        ("pumice bench x --device ref", []),
        ("pumice view x --device ref", []),
        ("pumice run examples/digits/digits.vmfb --function=cl", ["--function=classify"]),
        ("pumice run absent.vmfb --function=cl", []),
        ("pumice run LICENSE --function=cl", []),
        ("pumice run x -b 0=4xf32=@examples/digits/th", ["0=4xf32=@examples/digits/three.npy"]),
        ("pumice run x --input=@examples/digits/th", ["--input=@examples/digits/three.npy"]),
        ("pumice run x --input @shaders/mul.", ["@shaders/mul.comp", "@shaders/mul.spv"]),
        # Of a single folder what is in it.
        ("pumice run x --input @shaders/exam", ["@shaders/examples/game_of_life.comp"]),
        ("pumice run x --input @absent/", []),
        ("pumice run x --input 4xf3", []),
        ("pumice walk the", []),
    ],
)
@pytest.mark.parametrize("shell", PLACES)
def test_answers(shell: str, words: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    if shell != "bash":
        assert answers(shell, words)[: len(expected) or None] == expected
        return
    # Bash sends what is between spaces in parts, and replaces the last of them, with an @ before it.
    line = re.sub("([=@]+)", r" \1 ", words).replace("  ", " ").rstrip(" ")
    last = words.rpartition(" ")[2]
    kept = len(last) - len(re.split("=|(?=@)", last)[-1])
    assert answers(shell, line)[: len(expected) or None] == [one if one == "file" else one[kept:] for one in expected]


@pytest.mark.parametrize("command", ["run x --parameters", "bench x --parameters", "view x --channel"])
def test_files_are_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for shell in ("zsh", "fish"):
        assert answers(shell, f"pumice {command} 1=examples/digits/th") == ["1=examples/digits/three.npy"]
    assert answers("bash", f"pumice {command} 1 = examples/digits/th") == ["file"]  # bash replaces what is after the =


@pytest.mark.parametrize("shell", PLACES)
def test_of_a_folder_that_links_to_itself_the_link_is_told(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    words = {"bash": "pumice run x --input @ lo"}.get(shell, "pumice run x --input @lo")
    assert answers(shell, words) == ["@loop/again/"]


def test_bash_is_told_after_a_break() -> None:
    assert answers("bash", "pumice run x --device =") == ["vulkan", "lavapipe", "reference"]


@pytest.mark.slow
def test_only_what_is_used_is_imported() -> None:
    script = (
        "import sys\nfrom pumice.tools.cli import main\ntry: main([])\nexcept SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('pumice.tools.') and m.count('.') > 2],"
        " {'rich', 'numpy', 'vulkan'} & set(sys.modules))"
    )
    asked = {"COMP_WORDS": "pumice r", "COMP_CWORD": "1", "_PUMICE_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["plain,run", "plain,run-checks", "[] set()"]


def test_nothing_is_said_or_done_while_somebody_types(tmp_path: Path) -> None:
    wrong = {"PUMICE_DEBUG": "perhaps", "PUMICE_VALIDATE": "1", "HOME": str(tmp_path)}
    assert answers("zsh", "pumice cac", **wrong) == ["cache"]
    assert answers("zsh", "pumice --install-completion fish ", **wrong)
    assert not any(tmp_path.iterdir())
    for asked in ("bash_walk", "tcsh_complete", "x"):
        result = CliRunner().invoke(main, ["devices"], env={"_PUMICE_COMPLETE": asked})
        assert (result.exit_code, result.output) == (1, "")


@pytest.mark.slow
@needs_bash
def test_bash_reads_the_name_that_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "it's a \\ $1; (b).npy").touch()
    assert install(tmp_path, "bash").exit_code == 0
    script = f"""
        source {PLACES["bash"]}
        COMP_WORDS=(pumice run x --input @ it) COMP_CWORD=5
        _pumice_completion {program_in(tmp_path)}
        eval "printf '%s|' ${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("@it's a \\ $1; (b).npy|", "")


def program_in(folder: Path) -> Path:
    program = folder / "bin" / "pumice"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from pumice.tools.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    return program


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        import pty

        self._master, slave = pty.openpty()
        # The terminal becomes the one that controls the shell.
        script = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
        )
        self._shell = subprocess.Popen(
            [sys.executable, "-c", script, *command],
            env=environment,
            cwd=ROOT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> str:
        """What is printed until the text comes, without escape sequences."""
        printed = b""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if select.select([self._master], [], [], 1)[0]:
                printed += os.read(self._master, 4096)
            shown = re.sub(rb"\x1b\[[0-9;?>=]*[A-Za-z]|\x1b[=>()][0-9AB]?|\r", b"", printed).decode(errors="replace")
            if text in shown:
                return shown
        pytest.fail(f"expected {text!r}; the shell printed {printed!r}")

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._master)


@pytest.fixture(params=INSTALLED)
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = program_in(tmp_path)
    assert install(tmp_path, shell).exit_code == 0
    path = tmp_path / PLACES[shell]
    start = {
        "bash": (".bashrc", f"PS1='READY '\nsource {path}\n"),
        "zsh": (".zshrc", f"fpath=({path.parent} $fpath)\nautoload -Uz compinit && compinit -u\nPS1='READY '\n"),
        "fish": (".config/fish/config.fish", "set fish_greeting\nfunction fish_prompt\necho 'READY '\nend\n"),
    }
    name, text = start[shell]
    (tmp_path / name).write_text(text)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ZDOTDIR", "BASH_ENV"))}
    environment = {"HOME": str(tmp_path), "TERM": "dumb", "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    one = Terminal([shell, "-i"], {**kept, **environment})
    try:
        yield one
    finally:
        one.close()


@pytest.mark.slow
def test_tab_in_a_shell(terminal: Terminal) -> None:
    terminal.wait_for("READY ")
    for typed, completed in (
        ("pumice vend", "or-driver"),
        ("pumice run --bin", "ding"),
        ("pumice run shaders/mul.s", "pv"),
        ("pumice run x --device=la", "vapipe"),
        ("pumice run examples/digits/digits.vmfb --function=cl", "assify"),
        ("pumice run x -b 0=4xf32=@examples/digits/th", "ree.npy"),
    ):
        terminal.type(typed)
        terminal.wait_for(typed[-3:])
        terminal.type("\t")
        terminal.wait_for(completed)
        terminal.type("\x15")  # deletes the line
