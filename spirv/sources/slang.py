"""Slang's compiler (Slang, HLSL): an installed ``slangc``, or the library in the wheel of ``slangpy``."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from ...base.lazy_dataclass import dataclass
from .source_compiler import Compiler, Diagnostic, Job, framed_errors, version_of

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

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        arguments = ["-lang", job.language.value, "-target", "spirv", "-profile", _profile(job.spirv_version)]
        arguments += ["-fvk-use-entrypoint-name", "-matrix-layout-row-major"]
        if job.entry_point is not None:
            arguments += ["-entry", job.entry_point, "-stage", "compute"]
        arguments += [*(["-g"] if job.debug else []), *job.preprocessor(), source]
        if self.library is None:
            return [*arguments, "-o", str(output)]
        driver = Path(__file__).with_name("slang_driver.py")
        return ["-I", str(driver), str(self.library), str(output), *arguments]

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


def _profile(version: str) -> str:
    # Slang's oldest output is SPIR-V 1.3, the version of Vulkan 1.1.
    return "spirv_" + max(version, "1.3").replace(".", "_")
