"""The interface of a source compiler: a program with its own command line and messages.

The compiler's messages become one error, with the location, the line and a caret for each mistake.
"""

from __future__ import annotations

import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Final

from ...base.files import stamp
from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..checks import tools as spirv_tools
from .language import Language
from .overrides import OverrideValue

#: The SPIR-V version of a Vulkan version.
_SPIRV_OF_VULKAN: Final = {"vulkan1.0": "1.0", "vulkan1.1": "1.3", "vulkan1.2": "1.5", "vulkan1.3": "1.6"}
_VULKAN_OF_SPIRV: Final = {"1.3": "vulkan1.1", "1.4": "vulkan1.1", "1.5": "vulkan1.2", "1.6": "vulkan1.3"}
_SHOWN_ERRORS: Final = 10
_TOKEN: Final = re.compile(r"\w+|\S")
# An error with its source in a frame: the form of Slang's compiler and naga.
_FRAMED: Final = re.compile(
    r"^(?:fatal )?error(?:\[(E\d+)\])?: ([^\n]*)\n"
    r" *(?:-->|\u250c\u2500) (.+?):(\d+):(\d+) *\n"
    r"((?:[ \d]*[|\u2502][^\n]*\n?)*)"
    r"((?: *= [^\n]*\n?)*)",
    re.MULTILINE,
)
_LABEL: Final = re.compile(r"\^+ +(\S[^\n]*)")
_QUOTED: Final = re.compile(r"^'([^']+)'")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake.

    Attributes:
        file: the file, as the compiler names it.
        line: the line, from 1.
        column: the column, from 1, in characters; ``None`` if the compiler reports none.
    """

    file: str
    line: int
    column: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The options of one compilation.

    Attributes:
        entry_point: the entry point's name; ``None`` for all, if the compiler finds them by itself.
        macros: the macros, each as ``NAME=VALUE``.
        target_env: the target environment, ``vulkan1.2`` or ``spirv1.5``.
        overrides: the values of WGSL's overrides, by name or id.
    """

    language: Language
    stage: str
    entry_point: str | None
    macros: Sequence[str]
    folders: Sequence[Path]
    target_env: str
    debug: bool
    overrides: Mapping[int | str, OverrideValue] = field(default_factory=dict)

    @property
    def spirv_version(self) -> str:
        return _SPIRV_OF_VULKAN.get(self.target_env, self.target_env.removeprefix("spirv").replace("vulkan1.4", "1.6"))

    @property
    def is_compute_glsl(self) -> bool:
        """Whether the source is a compute shader in GLSL."""
        return self.language is Language.GLSL and self.stage == "comp"

    @property
    def vulkan_version(self) -> str:
        """The Vulkan version whose rules apply to the target."""
        known = self.target_env.startswith("vulkan")
        return self.target_env if known else _VULKAN_OF_SPIRV.get(self.spirv_version, "vulkan1.0")

    def preprocessor(self) -> list[str]:
        """Returns ``-D`` and ``-I`` options in the form of most compilers."""
        return [*(f"-D{macro}" for macro in self.macros), *(f"-I{folder}" for folder in self.folders)]


@dataclass(frozen=True, slots=True)
class Compiler(ABC):
    """An installed compiler.

    Attributes:
        path: the executable.
        version: the name and version, the same on every machine that has this build of the compiler.
    """

    path: Path
    version: str
    error: ClassVar[re.Pattern[str]]
    """The pattern of an error in its messages: the line, the message and, where reported, file, column and code."""

    def prepared(self, text: bytes, job: Job, name: Path | None) -> bytes:
        """Returns the text that is compiled for a source of a file, or of none, with the same line numbers."""
        del job, name
        return text

    def finished(self, code: bytes, job: Job) -> bytes:
        """Returns the module made from the compiler's output."""
        del job
        return code

    @abstractmethod
    def command(self, job: Job, source: str, output: Path) -> list[str]:
        """Returns the arguments of the executable."""

    def run(self, job: Job, source: str, output: Path) -> subprocess.CompletedProcess[bytes]:
        """Compiles a source to ``output``, in the folder of that; raises as `spirv_tools.run_tool`."""
        return spirv_tools.run_tool(self.path, self.command(job, source, output), cwd=output.parent)

    def advice(self, said: str) -> str:
        """Returns advice on an error; ``""`` if there is none."""
        del said
        return ""

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        """Yields the errors in its messages, warnings left out."""
        for match in self.error.finditer(said):
            part = match.groupdict("")
            message = part["message"].strip() + (f" [E{part['code']}]" if "code" in part else "")
            if not message.endswith("compilation terminated"):
                column = int(part["column"]) if part.get("column") else None
                yield Diagnostic(part.get("file", ""), int(part["line"]), column, message)


def version_of(path: Path, option: str = "--version") -> str:
    """Returns the version that an executable prints, or otherwise its file's stamp."""
    said = " ".join(spirv_tools.printed(path, option).split())[:200]
    if said:
        return said
    return f"{path} {stamp(path.stat())}"


def framed_errors(said: str) -> Iterator[Diagnostic]:
    """Yields the errors of a compiler that shows the source in a frame, with a label at the caret."""
    for match in _FRAMED.finditer(said.replace("\r\n", "\n")):
        code, summary, file, line, column, frame, notes = match.groups()
        label = None if notes else _LABEL.search(frame)
        message = label[1].rstrip(". ") if label else summary
        if summary not in message and message not in summary:
            message = f"{summary}: {message}"
        message = ": ".join([message, *(note.strip(" =") for note in notes.splitlines())])
        yield Diagnostic(file, int(line), int(column), f"{message} [{code}]" if code else message)


def compile_error(
    diagnostics: Iterable[Diagnostic], names: Mapping[str, str], texts: Mapping[str, bytes], notes: Sequence[str]
) -> InvalidArgumentError | None:
    """Returns the error of a source that does not compile; ``None`` without diagnostics.

    Args:
        names: the file names to show, by the compiler's names; other files keep their names.
        texts: the files' contents, by the compiler's names.
        notes: the lines for the end of the message.
    """
    entries = []
    for diagnostic in diagnostics:
        name = names.get(diagnostic.file, diagnostic.file)
        location = f"{name}:{diagnostic.line}" + (f":{diagnostic.column}" if diagnostic.column is not None else "")
        entries.append((location, diagnostic.message, _excerpt(texts.get(diagnostic.file, b""), diagnostic)))
    entries = list(dict.fromkeys(entries))
    if not entries:
        return None
    parts = [entries[0][1] + entries[0][2]]
    parts += [f"{location}: {message}{excerpt}" for location, message, excerpt in entries[1:_SHOWN_ERRORS]]
    if len(entries) > _SHOWN_ERRORS:
        parts.append(f"... and {len(entries) - _SHOWN_ERRORS} more errors")
    return InvalidArgumentError("\n".join([*parts, *notes]), location=entries[0][0])


def _excerpt(text: bytes, diagnostic: Diagnostic) -> str:
    lines = text.decode("utf-8", "replace").splitlines()
    if not 0 < diagnostic.line <= len(lines):
        return ""
    line = lines[diagnostic.line - 1]
    content = line.expandtabs(4)[:200]
    excerpt = f"\n{diagnostic.line:6} | {content}"
    match = None
    if diagnostic.column is not None:
        start = len(line[: diagnostic.column - 1].expandtabs(4))
        match = _TOKEN.match(content, start)
        if match is None and start <= len(content):
            return f"{excerpt}\n       | {' ' * start}^"
    elif token := _QUOTED.match(diagnostic.message):  # without a column, the quoted token gives the position
        match = re.search(rf"(?<!\w){re.escape(token[1])}(?!\w)", content)
    if match:
        excerpt += f"\n       | {' ' * match.start()}{'^' * len(match[0])}"
    return excerpt
