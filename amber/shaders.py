"""The SPIR-V of a script's shaders. Errors in their text are located in the script."""

from __future__ import annotations

import contextlib
import re
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..spirv.checks import tools as spirv_tools
from ..spirv.sources.compile import compile_source
from ..spirv.sources.language import Language
from ..status import InvalidArgumentError, shown
from .script import Script, Shader
from .source import Position, ScriptError, Source

_SPIRV_MAGIC: Final = 0x07230203
_ASSEMBLER_ERROR: Final = re.compile(r"error: ([0-9]+): ([0-9]+): (.*)", re.DOTALL)
_GLSL_PLACE: Final = re.compile(r"<source>:(\d+)(?::\d+)?")
_WORD: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,8}")


def compile_shader(
    script: Script,
    shader: Shader,
    optimizations: tuple[str, ...] = (),
    entry_point: str = "main",
    *,
    debug: bool = False,
) -> bytes:
    """Returns a SPIR-V module.

    Args:
        entry_point: the function of an HLSL shader to compile.
        debug: whether to keep line numbers in the module.
        optimizations: the ``spirv-opt`` passes to run on the module.

    Raises:
        ScriptError: the shader is wrong; the message is the compiler's.
        UnavailableError: a compiler or tool is not installed; the message has instructions.
    """
    target = shader.target_env or script.target_env
    if shader.format == "SPIRV-BIN":
        assert isinstance(shader.source, bytes)
        code = shader.source
    else:
        assert isinstance(shader.source, str)
        if shader.format == "SPIRV-ASM":
            code = _assemble(script, shader, shader.source, target)
        elif shader.format == "SPIRV-HEX":
            code = _from_hex(script, shader, shader.source)
        else:
            code = _compile(script, shader, shader.source, target, entry_point, debug)
    if optimizations:
        try:
            code = spirv_tools.optimize(code, target, optimizations)
        except InvalidArgumentError as error:
            raise _error(script, shader, error.message, 0, 1) from error
    return code


def _assemble(script: Script, shader: Shader, text: str, target: str) -> bytes:
    try:
        return spirv_tools.assemble(text, target)
    except InvalidArgumentError as error:
        match = _ASSEMBLER_ERROR.search(error.message)
        if match is None:
            raise _error(script, shader, error.message, 0, 1) from error
        raise _error(script, shader, f"spirv-as: {match[3]}", int(match[1]), int(match[2])) from error


def _from_hex(script: Script, shader: Shader, text: str) -> bytes:
    words: list[int] = []
    for number, line in enumerate(text.splitlines()):
        for match in re.finditer(r"[^\s,]+", line.split("#")[0].split(";")[0]):
            if not _WORD.fullmatch(match[0]):
                message = f"expected a 32-bit word such as 0x07230203, got {shown(match[0])}"
                raise _error(script, shader, message, number + 1, match.start() + 1)
            words.append(int(match[0], 16))
    if not words or words[0] != _SPIRV_MAGIC:
        raise _error(script, shader, f"expected SPIR-V words, the first of them {_SPIRV_MAGIC:#010x}", 0, 1)
    return struct.pack(f"={len(words)}I", *words)


def _compile(script: Script, shader: Shader, text: str, target: str, entry_point: str, debug: bool) -> bytes:
    # "vulkan1.1spv1.4" names both; a SPIR-V version is "spv1.4" to the other tools and "spirv1.4" to compilers.
    target = re.sub(r"^(?:vulkan1\.[0-9])?spv", "spirv", target)
    language = Language(shader.format.lower())
    try:
        with _virtual_folder(script) as folder:
            folders = [folder] if folder is not None else []
            return compile_source(
                text, language, entry_point=entry_point, include_dirs=folders, target_env=target, debug=debug
            )
    except InvalidArgumentError as error:
        match = _GLSL_PLACE.fullmatch(error.location or "")
        raise _error(script, shader, error.message, int(match[1]) if match else 0, 1, pointed=True) from error


@contextlib.contextmanager
def _virtual_folder(script: Script) -> Iterator[Path | None]:
    """Yields a folder with the script's virtual files, for shaders to include; ``None`` if it has none."""
    if not script.virtual_files:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pumice-amber-") as name:
        root = Path(name).resolve()
        for file, text in script.virtual_files.items():
            path = (root / file).resolve()
            if path.is_relative_to(root):  # nothing is written elsewhere
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        yield root


def _error(
    script: Script, shader: Shader, message: str, line: int, column: int, *, pointed: bool = False
) -> ScriptError:
    """Returns an error in a shader's text, whose lines count from 1; line 0 means no line in particular.

    Args:
        pointed: whether the message shows the line.
    """
    full_message = f"shader {shader.name}: {message}"
    if not shader.first_line or not line:
        source = Source("", shader.file or script.path)
        position = Position(line, column) if shader.file and line else shader.position
        return ScriptError(full_message, location=source.at(position) if line or not shader.file else shader.file)
    position = Position(shader.first_line + line - 1, column)
    if pointed or not isinstance(shader.source, str):
        return ScriptError(full_message, location=f"{script.path}:{position.line}")
    lines = [""] * (shader.first_line - 1) + shader.source.splitlines()
    return Source("\n".join(lines), script.path).error(full_message, position)
