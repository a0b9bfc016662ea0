"""SPIR-V assembly, by SPIRV-Tools' ``spirv-as``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..checks import tools as spirv_tools
from .diagnostics import Diagnostic
from .source_compiler import Compiler, Job

_ERROR: Final = re.compile(r"^error: (\d+): (?:(\d+): )?(.*)$", re.MULTILINE)


class SpirvAs(Compiler):
    """Ids that are numbers keep them."""

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        return ["--preserve-numeric-ids", "--target-env", f"spv{job.spirv_version}", "-o", str(output), source]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        for match in _ERROR.finditer(said):
            yield Diagnostic("", int(match[1]), int(match[2]) if match[2] else None, match[3])


def find_assembler() -> SpirvAs:
    path = spirv_tools.find_tool("spirv-as")
    return SpirvAs(path, spirv_tools.executable_version(path).partition("\n")[0])
