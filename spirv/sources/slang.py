"""Slang's compiler (Slang, HLSL): an installed ``slangc``, or the library in the wheel of ``slangpy``."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from ...base.lazy_dataclass import dataclass
from ...status import UnknownError
from ..binary.grammar import Op
from ..binary.words import HEADER_WORDS, encode, pack, read_binary
from ..checks import tools as spirv_tools
from . import hlsl_dialect
from .language import Language
from .source_compiler import Compiler, Diagnostic, Job, framed_errors, version_of

_S_ABS: Final = 5
_TRANSLATED: Final = "translated.hlsl"
_PACKAGE: Final = "slangpy"
_LIBRARIES: Final = (
    *("libslang-compiler*.so*", "libslang-compiler*.dylib", "slang-compiler*.dll"),
    *("libslang.so*", "libslang.dylib", "slang.dll"),  # names before 2026
)


@dataclass(frozen=True, slots=True)
class Slangc(Compiler):
    """Attributes:
    library: the library of a wheel, which `slang_driver` loads; ``None`` for an executable.
    """

    library: Path | None = None
    # The form of releases before 2026.
    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?P<file>.+?)\((?P<line>\d+)\): (?:fatal )?error (?P<code>\d+): (?P<message>.*)$", re.MULTILINE
    )

    def run(self, job: Job, source: str, output: Path) -> subprocess.CompletedProcess[bytes]:
        result = self._compile(job, source, output)
        if output.is_file():
            output.write_bytes(_with_unsigned_values(output.read_bytes()))
        return result

    def _compile(self, job: Job, source: str, output: Path) -> subprocess.CompletedProcess[bytes]:
        """Compiles a source; HLSL that Slang refuses is compiled once more with what `hlsl_dialect` declares, then in
        its words. The messages are always about the source itself.
        """
        crash = None
        try:
            result = Compiler.run(self, job, source, output)
        except UnknownError as error:
            crash = error
        if job.language is Language.HLSL and (crash is not None or result.returncode):
            for text in self._translations(job, source, output.parent):
                (output.parent / _TRANSLATED).write_text(text, encoding="utf-8")
                arguments = ["-unscoped-enum", *self._options(job), _TRANSLATED]
                with contextlib.suppress(UnknownError):
                    again = spirv_tools.run_tool(self.path, self._driven(arguments, output), cwd=output.parent)
                    if not again.returncode:
                        return again
        if crash is not None:
            raise crash
        return result

    def _translations(self, job: Job, source: str, folder: Path) -> Iterator[str]:
        yield f'{hlsl_dialect.DECLARATIONS}#line 1\n#include "{source}"\n'
        arguments = self._driven(["-lang", "slang", "-E", *job.preprocessor(), source], folder / "unused")
        text = spirv_tools.run_tool(self.path, arguments, cwd=folder).stdout.decode("utf-8", "replace")
        if text:
            yield hlsl_dialect.DECLARATIONS + hlsl_dialect.translated(text, job.entry_point)

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        return self._driven([*self._options(job), source], output)

    def _options(self, job: Job) -> list[str]:
        # As HLSL, a variable of a loop would live on after it, and two loops could not have the same.
        arguments = ["-lang", "slang", "-target", "spirv", "-profile", _profile(job.spirv_version)]
        arguments += ["-fvk-use-entrypoint-name", "-matrix-layout-row-major"]
        if job.entry_point is not None:
            arguments += ["-entry", job.entry_point, "-stage", "compute"]
        return [*arguments, *(["-g"] if job.debug else []), *job.preprocessor()]

    def _driven(self, arguments: Sequence[str], output: Path) -> list[str]:
        """Returns the arguments of the executable: the compiler's own, or those of the driver for the library."""
        if self.library is None:
            return [*arguments, "-o", str(output)]
        return ["-I", str(Path(__file__).with_name("slang_driver.py")), str(self.library), str(output), *arguments]

    def advice(self, said: str) -> str:
        if "no exported symbols" not in said:
            return ""
        return 'there is no entry point: mark a function with [shader("compute")], or name one (entry_point=, --entry)'

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        yield from Compiler.diagnostics(self, said)
        yield from framed_errors(said)


def from_executable(path: Path) -> Slangc:
    return Slangc(path, f"slangc {version_of(path, '-version')}")


def from_wheel() -> Slangc | None:
    """Returns the compiler of an installed ``slangpy``, which is not imported."""
    try:
        spec = importlib.util.find_spec(_PACKAGE)
        version = importlib.metadata.version(_PACKAGE)
    except (ImportError, ValueError, importlib.metadata.PackageNotFoundError):
        return None
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for pattern in _LIBRARIES:
            for library in sorted(Path(folder).glob(pattern)):
                return Slangc(Path(sys.executable), f"slang of {_PACKAGE} {version}: {library.name}", library)
    return None


def _with_unsigned_values(code: bytes) -> bytes:
    """Returns a module in which the absolute value of an unsigned number is the number: Slang takes it for signed."""
    if code[:4] != b"\x03\x02\x23\x07":
        return code
    binary = read_binary(code)
    words = binary.words
    result = list(words[:HEADER_WORDS])
    unsigned: set[int] = set()
    sets: set[int] = set()
    for opcode, start, end in binary:
        match opcode:
            case Op.ExtInstImport if binary.string(start + 2, end, "replace")[0] == "GLSL.std.450":
                sets.add(words[start + 1])
            case Op.TypeInt if not words[start + 3]:
                unsigned.add(words[start + 1])
            case Op.TypeVector if words[start + 2] in unsigned:
                unsigned.add(words[start + 1])
            case Op.ExtInst if words[start + 3] in sets and words[start + 4] == _S_ABS and words[start + 1] in unsigned:
                result += encode(Op.CopyObject, words[start + 1], words[start + 2], words[start + 5])
                continue
        result += words[start:end]
    return pack(result)


def _profile(version: str) -> str:
    # Slang's oldest output is SPIR-V 1.3, the version of Vulkan 1.1.
    return "spirv_" + max(version, "1.3").replace(".", "_")
