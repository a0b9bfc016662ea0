"""glslang (GLSL, HLSL) and shaderc's glslc (GLSL)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...status import shown
from ..checks import tools as spirv_tools
from .diagnostics import Diagnostic
from .includes import enable_includes
from .language import Language
from .source_compiler import Compiler, Job

# The file part is lazy and ends at the first `:<digits>:`, so a drive letter stays part of it.
_GLSLANG_ERROR: Final = re.compile(r"^ERROR: (.+?):(\d+): (.*)$", re.MULTILINE)
_GLSLC_ERROR: Final = re.compile(r"^(.+?):(\d+): error: (.*)$", re.MULTILINE)
_SHIFTED: Final = {"t": "texture", "u": "uav", "s": "sampler", "b": "cbuffer"}


class Glslang(Compiler):
    """``glslangValidator`` or ``glslang``."""

    def prepared(self, text: bytes, name: Path | None) -> bytes:
        # Release 12 has no option that enables an extension.
        return enable_includes(text, name)

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        arguments = ["-V", "-S", job.stage, "--target-env", job.target_env]
        if job.language is Language.HLSL:
            entry = job.entry_point or "main"
            arguments += ["-D", "-e", entry, "--source-entrypoint", entry, "--hlsl-enable-16bit-types", "--hlsl-iomap"]
            for register, shift in job.register_shifts.items():
                arguments += [f"--shift-{_SHIFTED[register]}-binding", str(shift)]
        return [*arguments, *(["-g"] if job.debug else []), *job.preprocessor(), "-o", str(output), source]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        return _errors(_GLSLANG_ERROR, said)


class Glslc(Compiler):
    """``glslc``, which takes ``#include`` without an extension."""

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        target = [f"--target-env={job.vulkan_version}"]
        if job.target_env.startswith("spirv"):
            target.append(f"--target-spv={job.target_env.replace('spirv', 'spv')}")
        debug = ["-g"] if job.debug else []
        return [f"-fshader-stage={job.stage}", *target, "-O0", *debug, *job.preprocessor(), "-o", str(output), source]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        return _errors(_GLSLC_ERROR, said)


def identify(path: Path) -> Glslang | Glslc | str:
    """Returns the compiler by an executable's ``--version``, or its output if that names none."""
    lines = spirv_tools.executable_version(path).splitlines()
    for line in lines:
        if match := re.match(r"glslang version:?\s*(\S+)", line, re.IGNORECASE):
            return Glslang(path, f"glslang {match[1]}")
    if lines and lines[0].startswith("shaderc"):
        return Glslc(path, "; ".join(line.strip() for line in lines if line.strip()))
    return shown((lines or [""])[0])


def _errors(pattern: re.Pattern[str], said: str) -> Iterator[Diagnostic]:
    for match in pattern.finditer(said):
        message = match[3].strip()
        if not message.endswith("compilation terminated"):
            yield Diagnostic(match[1], int(match[2]), None, message)
