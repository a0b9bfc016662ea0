"""Completion of the command line by bash, zsh and fish: the scripts for the shells, and the answers to them.

The scripts are click's. On Tab a shell calls the program with its words in the environment; click finds the command or
option of the last word. The classes here handle how each shell splits words with ``=`` or ``@``, and which part of a
word it replaces.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from ..base.files import reading_errors, write_whole, writing_errors
from ..status import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    shown,
)

_BASH_BREAKS: Final = re.compile("[=:@]+")
_BASH_SPECIAL: Final = re.compile(r"[ \t!\"#$&'()*;<>?\[\\\]^`{|}]")
_OLDEST_BASH: Final = (4, 4)
# A file with click's script itself works only once, as then it considers its function already loaded.
_ZSH: Final = """\
#compdef %(prog_name)s
(( $+commands[%(prog_name)s] )) || return 1
eval "$(%(complete_var)s=zsh_source %(prog_name)s)"
%(complete_func)s "$@"
"""


class _Words(ShellComplete):
    """Finds completions of a word, and returns the part of it that the shell replaces."""

    def replaced(self, word: str) -> str:
        """Returns the end of an incomplete word that the shell replaces."""
        return word

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        replaced = self.replaced(incomplete)
        kept = len(incomplete) - len(replaced)
        option, equals, _ = incomplete.partition("=")
        head = option + equals if equals and option.startswith("--") else ""
        items: list[CompletionItem[str]] = []
        for item in super().get_completions(args, incomplete):
            if item.type == "plain":
                items.append(CompletionItem((head + item.value)[kept:], help=item.help))
            elif item.value == replaced:
                items.append(item)
            else:  # the shell would look for a file of the name that it replaces
                before = incomplete.removesuffix(item.value)
                items += [CompletionItem((before + path)[kept:]) for path in _paths(item.value, item.type == "dir")]
        return items


class _Bash(_Words, BashComplete):
    """Bash: passes ``=``, ``:`` and ``@`` as separate words; replaces the text after them, or a word from ``@``."""

    def replaced(self, word: str) -> str:
        return re.split("[=:]|(?=@)", word)[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        # Bash inserts words unchanged; its `read` removes one of two backslashes.
        quoted = _BASH_SPECIAL.sub(r"\\\g<0>", item.value).replace("\\", r"\\")
        return f"{item.type},{quoted if item.type == 'plain' else item.value}"

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        attached = False
        for word in (*args, incomplete):
            breaks = _BASH_BREAKS.fullmatch(word) is not None
            # Bash does not report spaces: --input @a.npy had one, as --input=@a.npy is passed with "=@".
            spaced = word.startswith("@") and words[-1:] and words[-1].startswith("-") and "=" not in words[-1]
            if words and (breaks or attached) and not spaced:
                words[-1] += word
            else:
                words.append(word)
            attached = breaks
        return words[:-1], words[-1]


class _Zsh(_Words, ZshComplete):
    pass


class _Fish(_Words, FishComplete):
    pass


SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def complete(program: click.Command, name: str, asked_for: str) -> int:
    """Prints the answer to a shell's instruction, such as ``bash_complete``.

    Returns the exit status, which is 1 for other instructions.
    """
    shell, _, instruction = asked_for.partition("_")
    kind = SHELLS.get(shell)
    if kind is None or instruction not in ("complete", "source"):
        return 1
    asked = kind(program, {}, name, _variable(name))
    click.echo(asked.complete() if instruction == "complete" else asked.source())
    return 0


def install(program: click.Command, name: str, shell: str | None) -> str:
    """Writes the script for a shell, by default that of ``$SHELL``, where the shell finds it; returns a message.

    Raises:
        InvalidArgumentError: the shell is not supported or unknown.
        FailedPreconditionError: bash is too old, or there is no home folder.
        AlreadyExistsError: a file of that name has other content.
        NotFoundError, PermissionDeniedError, ResourceExhaustedError, UnavailableError: the file cannot be read or
            written.
    """
    chosen = _chosen(shell)
    if chosen == "bash":
        _require_bash()
    kind = SHELLS[chosen]
    asked = kind(program, {}, name, _variable(name))
    script = (_ZSH if chosen == "zsh" else kind.source_template) % asked.source_vars()
    path = _path(chosen, name)
    held = None
    with contextlib.suppress(NotFoundError), reading_errors(path):
        held = path.read_bytes()
    if held is not None and _variable(name).encode() not in held:
        raise AlreadyExistsError(
            f"{path} holds something else than completion of {name}; move it away, and run this again"
        )
    if held != script.encode():
        with writing_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write(script.encode()))
    done = "unchanged:" if held == script.encode() else "wrote" if held is None else "replaced"
    return "\n".join((f"{done} {path}", *_remaining(chosen, path, name)))


def _variable(name: str) -> str:
    """Returns the environment variable with which a shell asks; click uses the same."""
    return f"_{name.upper()}_COMPLETE"


def _chosen(shell: str | None) -> str:
    known = ", ".join(SHELLS)
    if shell is not None:
        if shell not in SHELLS:
            raise InvalidArgumentError(f"expected a shell of {known}; got {shown(shell)}")
        return shell
    login = os.environ.get("SHELL", "")
    if (name := Path(login).name) not in SHELLS:
        reason = f"$SHELL is {shown(login)}" if login else "$SHELL is not set"
        raise InvalidArgumentError(f"expected a shell of {known}, as in --install-completion bash; {reason}")
    return name


def _require_bash() -> None:
    """Refuses a bash whose ``complete`` lacks options that the script has, such as that of macOS."""
    command = ["bash", "--norc", "-c", 'echo "${BASH_VERSINFO[0]} ${BASH_VERSINFO[1]}"']
    try:
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=10, check=True).stdout
        major, minor = map(int, printed.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        raise UnavailableError("no bash that runs was found on PATH; install it, or name zsh or fish") from None
    if (major, minor) < _OLDEST_BASH:
        raise FailedPreconditionError(
            f"completion needs bash 4.4 or later, and the one on PATH is {major}.{minor}; install a newer "
            "one (macOS: brew install bash bash-completion@2), or name zsh or fish"
        )


def _path(shell: str, name: str) -> Path:
    if shell == "fish":
        return _folder("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / f"{name}.fish"
    data = _folder("XDG_DATA_HOME", ".local/share")
    if shell == "zsh":
        return data / "zsh" / "site-functions" / f"_{name}"
    return data / "bash-completion" / "completions" / name


def _folder(variable: str, default: str) -> Path:
    """Returns a folder of the XDG Base Directory Specification, which ignores paths that are not absolute."""
    folder = Path(os.environ.get(variable, ""))
    if folder.is_absolute():
        return folder
    with contextlib.suppress(RuntimeError):  # neither HOME nor the user database has a home folder
        home = Path.home()
        if home.is_absolute() and os.environ.get("HOME") != "":
            return home / default
    raise FailedPreconditionError(f"there is no home folder: set HOME or {variable} to an absolute path")


def _remaining(shell: str, path: Path, name: str) -> Iterator[str]:
    """Yields the steps left to the user."""
    if shell == "zsh":
        yield "Put this into ~/.zshrc, before any other line with compinit, and open a new shell:"
        yield f"  fpath=({shlex.quote(str(path.parent))} $fpath)"
        yield "  autoload -Uz compinit && compinit"
        return
    yield "New shells complete `" + name + "`."
    if shell == "bash":
        yield "The package bash-completion loads it; without that, put this into ~/.bashrc:"
        yield f"  source {shlex.quote(str(path))}"


def _paths(start: str, only_folders: bool) -> list[str]:
    """Returns the paths that begin with a text.

    If that is a single folder, returns the paths inside it, as shells put a space after a single completion.

    The descent stops at a link to an enclosing folder.
    """
    folder, slash, name = start.rpartition("/")
    paths = []
    with contextlib.suppress(OSError):
        for entry in sorted(Path(folder + slash).iterdir()):
            if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
                is_folder = entry.is_dir()
                if is_folder or not only_folders:
                    paths.append(folder + slash + entry.name + "/" * is_folder)
    if len(paths) == 1 and paths[0].endswith("/") and not _is_within(folder + slash, paths[0]):
        return _paths(paths[0], only_folders) or paths
    return paths


def _is_within(path: str, folder: str) -> bool:
    return Path(path).resolve().is_relative_to(Path(folder).resolve())
