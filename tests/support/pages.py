"""The code blocks of the documentation, run as a reader would run them: one after another, in one folder a page.

    python tests/support/pages.py                     checks that each block can be run, and counts those that are
    python -W error tests/support/pages.py PAGE...    runs the blocks of these pages

CONTRIBUTING.md says what is run how, and how a block is left out.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import tokenize
import tomllib
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from click.testing import CliRunner
from markdown_it import MarkdownIt

from pumice import amber
from pumice.status import UnavailableError
from pumice.study.definition.study_file import load_study
from pumice.tools.cli import main as pumice
from pumice.vm.assembly.assembler import assemble

ROOT = Path(__file__).resolve().parents[2]
LACKING = 77
"""The exit status if a page needs a tool or a package that is not installed."""

_NOT_RUN = re.compile(r"<!-- not run: (\S.*) -->\s*")
_IN_A_CHECKOUT = "<!-- runs in a checkout -->"
_INSTALLS = re.compile(r"\b(pip|apt|apt-get|npm|cargo) install\b")
_NEEDS_A_SHELL = frozenset(";|<>&$*`")
# Too noisy, or slower: that depends on the machine.
_MEASURES = re.compile(r"pumice (bench|study)\b")


class BlockError(Exception):
    """A block is wrong."""


class LackingError(Exception):
    """Something is not installed here."""


@dataclass(frozen=True)
class Block:
    """A fenced block; ``title`` is the file that it shows, ``reason`` why it is not run."""

    path: Path
    line: int
    language: str
    title: str
    text: str
    reason: str

    @property
    def place(self) -> str:
        return f"{_shown(self.path)}:{self.line}"


def _shown(path: Path) -> str:
    return os.path.relpath(path, ROOT)


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a page in order; a `BlockError` if one can neither be run nor says why not."""
    reason = ""
    for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
        if token.type == "html_block":
            found = _NOT_RUN.fullmatch(token.content)
            reason = found[1] if found else reason
            continue
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            language, _, info = token.info.partition(" ")
            title = info.removeprefix('title="').removesuffix('"') if info else ""
            block = Block(path, token.map[0] + 1, language, title, token.content, reason)
            if info != (f'title="{title}"' if title else ""):
                raise BlockError(f'{block.place}: expected only title="FILE" after the language, got {info}')
            if block.language not in RUNNERS and not reason:
                raise BlockError(f"{block.place}: expected a fence of {', '.join(RUNNERS)}, got {language!r}")
            if block.language in ("sh", "console") and _INSTALLS.search(block.text) and not reason:
                raise BlockError(f"{block.place}: expected <!-- not run: … --> before what installs packages")
            yield block
        elif reason:
            raise BlockError(f"{_shown(path)}: no block follows <!-- not run: {reason} -->")
        reason = ""


class Page:
    """A page under way in the working folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.printed: str | None = None
        """What the block before printed, and no comment claims."""
        self._module = types.ModuleType("__main__")
        self._claims: dict[int, str] = {}
        self._held: set[int] = set()
        self._unused: dict[str, str] = {}

    def run(self) -> None:
        """Runs the blocks. One that fails has to be followed by a text block with the error."""
        self._module.__dict__["print"] = self._print
        sys.modules["__main__"] = self._module
        failure = ""
        for block in blocks(self.path):
            if failure and (block.reason or block.language != "text"):
                break
            if block.reason:
                self.printed = None
                continue
            for name in list(self._unused):
                if Path(name).stem in block.text or (name.startswith("test_") and "pytest" in block.text):
                    del self._unused[name]
            try:
                failure = RUNNERS[block.language](self, block) or ""
            except BlockError as error:
                raise BlockError(f"{block.place}: {error}") from error
            failure = failure and f"{block.place}: {failure}"
        if failure:
            raise BlockError(failure)
        for name, place in self._unused.items():
            raise BlockError(f"{place}: no block after it uses {name}")
        if never := sorted(self._claims.keys() - self._held):
            raise BlockError(f"{_shown(self.path)}: print() never ran in the lines {never}")

    def python(self, block: Block) -> str:
        """Runs the block; a comment after ``print(…)`` is what it prints. Returns the traceback, if it raises."""
        # Errors, JAX's among them, name the page's lines.
        source = "\n" * block.line + block.text
        tree = ast.parse(source, str(block.path))
        if block.title:
            self.file(block)
            return ""
        comments = {
            token.start[0]: token.string.lstrip("# ")
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "print"
                and node.end_lineno in comments
            ):
                self._claims[node.lineno] = comments[node.end_lineno]
        self.printed = ""
        try:
            exec(compile(tree, str(block.path), "exec"), self._module.__dict__)
        except BlockError:
            raise
        except Exception as error:
            _raise_if_lacking(error)
            self.printed += "".join(traceback.format_exception_only(error))
            return "".join(traceback.format_exception(error))
        return ""

    def _print(self, *values: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        text = io.StringIO()
        builtins.print(*values, sep=sep, end=end, file=text)
        frame = sys._getframe(1)
        claim = self._claims.get(frame.f_lineno)
        if claim is None or frame.f_code.co_filename != str(self.path):
            self.printed = (self.printed or "") + text.getvalue()
            return
        self._held.add(frame.f_lineno)
        if not _agree(claim, text.getvalue()):
            raise BlockError(f"line {frame.f_lineno} says {claim!r}, and prints {text.getvalue()!r}")

    def sh(self, block: Block) -> str:
        """Runs the commands. Returns what is wrong, if the last one fails."""
        self.printed, failure = "", ""
        for command in _commands(block.text):
            if failure:
                raise BlockError(failure)
            status, stdout, stderr = execute(command)
            self.printed += stdout + (stderr if status else "")
            failure = f"{command}: status {status}\n{stdout}{stderr}" if status else ""
        return failure

    def console(self, block: Block) -> None:
        """Runs each command, and compares its output with what is shown, if anything is."""
        self.printed = None
        head, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        if head or not parts:
            raise BlockError("expected '$ ' before a command")
        for part in parts:
            command, _, shown = part.partition("\n")
            status, stdout, stderr = execute(command)
            output = stdout + stderr if status else stdout
            if (status and not shown) or (shown and not _agree(shown, output)):
                raise BlockError(f"{command}: status {status}\n{stdout}{stderr}")

    def text(self, block: Block) -> None:
        """A file, or what the block before it printed or raised."""
        if block.title:
            self.file(block)
            return
        if self.printed is None:
            raise BlockError("expected a block before it that prints this, or <!-- not run: … -->")
        if not _agree(block.text, self.printed):
            raise BlockError(f"expected what the block before it prints:\n{self.printed}")
        self.printed = None

    def file(self, block: Block) -> None:
        self._unused[block.title] = block.place
        path = Path(block.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        self.printed = None


def _agree(shown: str, printed: str) -> bool:
    """Whether a text is the shown one: an ellipsis stands for anything, white space for any white space."""
    parts = (" ".join(part.split()) for part in shown.split("…"))
    return re.fullmatch(".*".join(map(re.escape, parts)), " ".join(printed.split())) is not None


def _commands(script: str) -> Iterator[str]:
    """The commands of a script; those with a here-document, open quotes or a backslash have several lines."""
    command = ""
    for line in script.splitlines():
        command += line
        here = re.search(r"<<\s*'?(\w+)", command)
        try:
            words = shlex.split(command.partition("\n")[0] if here else command, comments=True)
        except ValueError:
            words = None
        if words is None or line.endswith("\\") or (here and line != here[1]):
            command += "\n"
            continue
        if words:
            yield command
        command = ""
    if command:
        raise BlockError(f"expected the end of {command}")


def execute(command: str) -> tuple[int, str, str]:
    """Status and outputs of a command, pumice's in this process, which is a second sooner, unless it needs a shell."""
    words = [] if _NEEDS_A_SHELL & set(command) else shlex.split(command, comments=True)
    if words and words[0] in ("pumice", ".venv/bin/pumice"):
        result = CliRunner().invoke(pumice, words[1:], prog_name="pumice")
        status, stdout, stderr = result.exit_code, result.stdout, result.stderr
        if result.exception is not None:
            _raise_if_lacking(result.exception)
            if not isinstance(result.exception, SystemExit):
                stderr += "".join(traceback.format_exception(result.exception))
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        status, stdout, stderr = done.returncode, done.stdout, done.stderr
        if status == 127:
            raise LackingError(stderr.strip())
    return 0 if status in (3, 4) and _MEASURES.search(command) else status, stdout, stderr


def _raise_if_lacking(error: BaseException) -> None:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UnavailableError | ModuleNotFoundError):
            raise LackingError(str(cause)) from error
        cause = cause.__cause__ or cause.__context__


def _file(suffix: str, check: Callable[[Path], object]) -> Callable[[Page, Block], None]:
    """Runs a block that is a file, with a name or without: writes it, and checks it."""

    def run(page: Page, block: Block) -> None:
        path = Path(block.title or f"block{block.line}{suffix}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        page.printed = None
        try:
            check(path)
        except BlockError:
            raise
        except Exception as error:
            _raise_if_lacking(error)
            raise BlockError("".join(traceback.format_exception_only(error))) from error

    return run


def _by(command: str) -> Callable[[Path], None]:
    def check(path: Path) -> None:
        status, stdout, stderr = execute(f"{command} {path}")
        if status:
            raise BlockError(stdout + stderr)

    return check


def _toml(path: Path) -> None:
    if "targets" in tomllib.loads(path.read_text(encoding="utf-8")):
        load_study(path)


def _sql(path: Path) -> None:
    (results,) = Path().rglob("results.sqlite")
    with contextlib.closing(sqlite3.connect(results)) as database:
        database.execute(path.read_text(encoding="utf-8")).fetchall()


_SHADER = _by("pumice build -o checked.spv")
_PROGRAM = _by("pumice compile --target vulkan,reference -o checked.vmfb")

RUNNERS: dict[str, Callable[[Page, Block], str | None]] = {
    "python": Page.python,
    "sh": Page.sh,
    "console": Page.console,
    "text": Page.text,
    "amber": _file(".amber", amber.parse),
    "c": _file(".c", _by("cc -std=c11 -fsyntax-only -Wall -Wextra -Werror")),
    "glsl": _file(".comp", _SHADER),
    "hlsl": _file(".hlsl", _SHADER),
    "json": _file(".json", lambda path: json.loads(path.read_text(encoding="utf-8"))),
    "mlir": _file(".mlir", _PROGRAM),
    "protobuf": _file(".pbtxt", _PROGRAM),
    "slang": _file(".slang", _SHADER),
    "sql": _file(".sql", _sql),
    "toml": _file(".toml", _toml),
    "vmasm": _file(".vmasm", lambda path: assemble(path.read_text(encoding="utf-8"))),
    "wgsl": _file(".wgsl", _SHADER),
    "yaml": _file(".yaml", lambda path: yaml.safe_load(path.read_text(encoding="utf-8"))),
}


def _run(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if _IN_A_CHECKOUT in path.read_text(encoding="utf-8"):
            for name in ("examples", "shaders"):
                Path(name).symlink_to(ROOT / name)
            Path(".venv").symlink_to(sys.prefix)
        sys.path[0] = folder  # in place of this file's
        Page(path).run()


def _count() -> None:
    """Prints how many blocks are run, and the reasons of the others."""
    found = [block for path in pages() for block in blocks(path)]
    reasons = Counter(block.reason for block in found if block.reason)
    print(f"{len(found) - reasons.total()} blocks of {len(pages())} pages are run, {reasons.total()} are not:")
    for reason, count in reasons.most_common():
        print(f"  {count:2} {reason}")


def main(arguments: list[str]) -> int:
    try:
        for argument in arguments:
            _run(Path(argument).resolve())
        if not arguments:
            _count()
    except BlockError as error:
        print(error, file=sys.stderr)
        return 1
    except LackingError as error:
        print(error, file=sys.stderr)
        return LACKING
    return 0


def run_apart(path: str, errors: str) -> None:
    """Runs a page in a forked process, without the tests and the checkout on its path, and exits with its status."""
    warnings.simplefilter("error")
    del sys.modules["support"]
    paths = [Path(each) for each in sys.path if each]
    sys.path[:] = ["", *(str(each) for each in paths if each != ROOT and not each.is_relative_to(ROOT / "tests"))]
    with Path(errors).open("w", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), sys.stderr.fileno())
    sys.exit(main([path]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
