"""The DirectX Shader Compiler (HLSL)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .diagnostics import Diagnostic
from .source_compiler import Compiler, Job, version_of

_ERROR: Final = re.compile(r"^(.+?):(\d+):(\d+): (?:fatal )?error: (.*)$", re.MULTILINE)
_TARGETS: Final = {"1.4": "vulkan1.1spirv1.4"}


class Dxc(Compiler):
    """``dxc``, built with its SPIR-V backend, as its releases and the Vulkan SDK's are."""

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        target = _TARGETS.get(job.spirv_version, job.vulkan_version.replace("1.4", "1.3"))
        arguments = ["-spirv", "-T", "cs_6_6", "-E", job.entry_point or "main", f"-fspv-target-env={target}"]
        for register, shift in job.register_shifts.items():
            arguments += [f"-fvk-{register}-shift", str(shift), "all"]
        arguments += ["-fspv-debug=line"] if job.debug else []
        return ["-nologo", *arguments, *job.preprocessor(), "-Fo", str(output), source]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        for match in _ERROR.finditer(said):
            yield Diagnostic(match[1], int(match[2]), int(match[3]), match[4])


def from_executable(path: Path) -> Dxc:
    return Dxc(path, f"dxc {version_of(path)}")
