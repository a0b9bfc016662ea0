"""Compilers that are one command: glslang (GLSL, HLSL), shaderc's glslc (GLSL), dxc (HLSL) and spirv-as."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar, Final

from ...status import shown
from ..checks import tools as spirv_tools
from .dialects import as_vulkan_glsl
from .includes import enable_includes
from .language import Language
from .source_compiler import Compiler, Job, version_of

_ROWS: Final = b"#pragma pack_matrix(row_major)\n#line 1\n"
_RELAXED_RULES: Final = (11, 4)
_DXC_TARGETS: Final = {"1.4": "vulkan1.1spirv1.4"}


class Glslang(Compiler):
    """``glslangValidator`` or ``glslang``."""

    # The file part is lazy and ends at the first `:<digits>:`, so it includes a drive letter.
    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^ERROR: (?P<file>.+?):(?P<line>\d+): (?P<message>.*)$", re.MULTILINE
    )

    def prepared(self, text: bytes, job: Job, name: Path | None) -> bytes:
        if job.is_compute_glsl:
            text = as_vulkan_glsl(text)
        # Release 12 has no option that enables an extension, and none for the layout of matrices.
        return _ROWS + text if job.language is Language.HLSL else enable_includes(text, name)

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        # Uniforms outside blocks, atomic counters, and bindings of resources that have none.
        opengl = ["-R", "--auto-map-bindings"] if job.is_compute_glsl and self.takes_opengl else []
        arguments = [*opengl, "-V", "-S", job.stage, "--target-env", job.target_env]
        if job.language is Language.HLSL:
            # Its storage buffers are uniform blocks decorated as BufferBlock, which SPIR-V 1.4 does not have.
            arguments[-1] = min(job.vulkan_version, "vulkan1.1")
            entry = job.entry_point or "main"
            arguments += ["-D", "-e", entry, "--source-entrypoint", entry, "--hlsl-enable-16bit-types"]
            arguments += ["--hlsl-iomap", "--auto-map-bindings"]
        return [*arguments, *(["-g"] if job.debug else []), *job.preprocessor(), "-o", str(output), source]

    @property
    def takes_opengl(self) -> bool:
        """Whether this release takes what OpenGL's shaders have and Vulkan's have not."""
        version = re.findall(r"\d+", self.version)
        return not version or tuple(map(int, version[:2])) >= _RELAXED_RULES


class Glslc(Compiler):
    """``glslc``, which accepts ``#include`` without an extension, and no uniforms outside blocks."""

    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?P<file>.+?):(?P<line>\d+): error: (?P<message>.*)$", re.MULTILINE
    )

    def prepared(self, text: bytes, job: Job, name: Path | None) -> bytes:
        del name
        return as_vulkan_glsl(text) if job.is_compute_glsl else text

    def advice(self, said: str) -> str:
        loose = "outside a block" in said or "atomic counter" in said
        return "glslc takes no uniforms outside blocks and no atomic counters; glslangValidator does" if loose else ""

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        target = [f"--target-env={job.vulkan_version}"]
        if job.target_env.startswith("spirv"):
            target.append(f"--target-spv={job.target_env.replace('spirv', 'spv')}")
        debug = ["-g"] if job.debug else []
        target += ["-fauto-bind-uniforms"] if job.is_compute_glsl else []
        return [f"-fshader-stage={job.stage}", *target, "-O0", *debug, *job.preprocessor(), "-o", str(output), source]


class Dxc(Compiler):
    """``dxc`` with its SPIR-V backend, which its releases and the Vulkan SDK's have."""

    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<message>.*)$", re.MULTILINE
    )

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        target = _DXC_TARGETS.get(job.spirv_version, job.vulkan_version.replace("1.4", "1.3"))
        arguments = ["-spirv", "-T", "cs_6_6", "-E", job.entry_point or "main", f"-fspv-target-env={target}", "-Zpr"]
        arguments += ["-enable-16bit-types"]
        arguments += ["-fspv-debug=line"] if job.debug else []
        return ["-nologo", *arguments, *job.preprocessor(), "-Fo", str(output), source]


class SpirvAs(Compiler):
    """``spirv-as``; numeric ids keep their numbers."""

    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^error: (?P<line>\d+): (?:(?P<column>\d+): )?(?P<message>.*)$", re.MULTILINE
    )

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        return ["--preserve-numeric-ids", "--target-env", f"spv{job.spirv_version}", "-o", str(output), source]


def glslang_or_glslc(path: Path) -> Glslang | Glslc | str:
    """Returns the compiler by an executable's ``--version``, or the output if it names neither."""
    lines = spirv_tools.printed(path).splitlines()
    for line in lines:
        if match := re.match(r"glslang version:?\s*(\S+)", line, re.IGNORECASE):
            return Glslang(path, f"glslang {match[1]}")
    if lines and lines[0].startswith("shaderc"):
        return Glslc(path, "; ".join(line.strip() for line in lines if line.strip()))
    return shown((lines or [""])[0])


def dxc(path: Path) -> Dxc:
    return Dxc(path, f"dxc {version_of(path)}")


def find_assembler() -> SpirvAs:
    path = spirv_tools.find_tool("spirv-as")
    return SpirvAs(path, spirv_tools.printed(path).partition("\n")[0])
