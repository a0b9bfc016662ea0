"""GLSL to SPIR-V with an installed compiler, and a cache on disk.

`compile_glsl` reads the source and every file that it can include, hashes them with the options and the compiler's
version, and looks the hash up in the cache. If it is not there, ``glslangValidator`` (or ``glslang``, or ``glslc``)
compiles, and the result is stored unless a file changed meanwhile. Thread-safe; two threads that compile the same
source at once both succeed.

Environment:
    ``PUMICE_GLSLC``: the compiler to use, a path or a command name.
    ``PUMICE_CACHE_DIR``: where the cache lives instead of the user's cache directory.
    ``PUMICE_CACHE``: ``0`` switches the cache off.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...files import CachedFile
from ...install_hints import install_hint
from ...status import InvalidArgumentError, UnavailableError, shown
from .. import tools as spirv_tools
from .includes import BYTE_ORDER_MARK, absolute, enable_includes, included_files, read_source

_STAGES: Final = ("comp", "vert", "tesc", "tese", "geom", "frag")
_TARGET_ENVIRONMENTS: Final = (
    *(f"vulkan1.{minor}" for minor in range(5)),
    *(f"spirv1.{minor}" for minor in range(7)),
)
# The Vulkan version whose rules hold for a SPIR-V version where a compiler wants both.
_VULKAN_OF_SPIRV: Final = {3: "vulkan1.1", 4: "vulkan1.1", 5: "vulkan1.2", 6: "vulkan1.3"}
_COMMANDS: Final = ("glslangValidator", "glslang", "glslc")
_TEXT_NAME: Final = "source"
_SPIRV_MAGIC: Final = b"\x03\x02\x23\x07"
_NO_DEFINES: Final[Mapping[str, str | int]] = MappingProxyType({})

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_ERRORS: Final = 10
# The file part is lazy and ends at the first `:<digits>:`, so a drive letter stays part of it.
_GLSLANG_ERROR: Final = re.compile(r"^ERROR: (.+?):(\d+): (.*)$")
_GLSLC_ERROR: Final = re.compile(r"^(.+?):(\d+): error: (.*)$")
_QUOTED: Final = re.compile(r"^'([^']+)'")


@dataclass(frozen=True, slots=True)
class GlslCompiler:
    """An installed compiler.

    Attributes:
        path: the executable.
        is_glslc: whether it takes the command line of shaderc's ``glslc`` rather than glslang's.
        version: its name and version, the same on every machine that has this build of it.
    """

    path: Path
    is_glslc: bool
    version: str


def find_compiler() -> GlslCompiler:
    """The compiler that `compile_glsl` uses.

    Raises:
        UnavailableError: there is none, or ``PUMICE_GLSLC`` names something else; the message says how to install one.
    """
    override = os.environ.get("PUMICE_GLSLC")
    if override:
        found = shutil.which(override)
        if found is None:
            raise UnavailableError(f"PUMICE_GLSLC is {shown(override)}, which is not an executable. {_hint()}")
    else:
        found = next((path for path in map(shutil.which, _COMMANDS) if path), None)
        if found is None:
            raise UnavailableError(f"no GLSL compiler ({', '.join(_COMMANDS)}) was found on PATH. {_hint()}")
    path = Path(found).absolute()
    lines = spirv_tools.executable_version(path).splitlines()
    for line in lines:
        if match := re.match(r"glslang version:?\s*(\S+)", line, re.IGNORECASE):
            return GlslCompiler(path, False, f"glslang {match[1]}")
    if lines and lines[0].startswith("shaderc"):
        return GlslCompiler(path, True, "; ".join(line.strip() for line in lines if line.strip()))
    raise UnavailableError(
        f"{path} is neither glslang nor glslc, its --version says {shown((lines or [''])[0])}. {_hint()}"
    )


def compile_glsl(
    source: str | Path,
    *,
    stage: str = "comp",
    defines: Mapping[str, str | int] = _NO_DEFINES,
    include_dirs: Sequence[str | Path] = (),
    target_env: str = "vulkan1.2",
    optimize: bool = False,
    debug: bool = False,
) -> bytes:
    """Compile GLSL to a SPIR-V module.

    Args:
        source: GLSL text (``str``) or a file (``Path``); a ``str`` is never taken for a file name. A UTF-8 byte order
            mark at its start is passed over.
        stage: ``comp``, ``vert``, ``tesc``, ``tese``, ``geom`` or ``frag``.
        defines: macros by name; an empty string defines a name without a value.
        include_dirs: folders for ``#include``, searched after the including file's own. The source need not enable
            an extension for it.
        target_env: the Vulkan version, which fixes the SPIR-V version (``vulkan1.1``: 1.3, ``vulkan1.2``: 1.5), or a
            SPIR-V version (``spirv1.4``).
        optimize: run ``spirv-opt -O`` over the result.
        debug: keep the source and line numbers in the module.

    Returns:
        The module's bytes, in the byte order of this machine.

    Raises:
        InvalidArgumentError: the source does not compile (the message has file, line and the source line of
            each error; ``location`` those of the first), or an argument is wrong.
        NotFoundError: ``source`` is a path that does not exist.
        UnavailableError: no compiler is installed; the message says how to install one.
        DeadlineExceededError: the compiler did not end within a minute.
    """
    if stage not in _STAGES:
        raise InvalidArgumentError(f"expected a stage of {', '.join(_STAGES)}, got {shown(stage)}")
    if target_env not in _TARGET_ENVIRONMENTS:
        raise InvalidArgumentError(
            f"expected a target_env of {', '.join(_TARGET_ENVIRONMENTS)}, got {shown(target_env)}"
        )
    macros = _macros(defines)
    folders = [absolute(folder) for folder in include_dirs]
    compiler = find_compiler()
    optimizer = spirv_tools.version() if optimize else ""
    root = absolute(source) if isinstance(source, Path) else None

    def ingredients() -> tuple[bytes, dict[Path, bytes], object]:
        text = read_source(source)
        files = included_files(source, folders, text=text)
        name = str(root) if debug else ""
        options = [compiler.version, optimizer, stage, target_env, str(debug), name, *macros, *map(str, folders)]
        return text, files, (options, text, files)

    text, files, key = ingredients()
    entry = CachedFile("glsl", key)
    cached = entry.load()
    if cached is not None:
        return cached
    compiled = text.removeprefix(BYTE_ORDER_MARK)
    if not compiler.is_glslc:  # glslc enables the extension by itself, and glslang has no option for it before 14
        compiled = enable_includes(compiled, root if debug else None)
    # A file that is changed is compiled as a copy, in another folder than its neighbours.
    copied = root is None or compiled != text
    near = [root.parent] if root and copied else []
    if compiler.is_glslc:
        arguments = [f"-fshader-stage={stage}", *_glslc_target(target_env), "-O0"]
    else:
        arguments = ["-V", "-S", stage, "--target-env", target_env]
    arguments += ["-g"] if debug else []
    arguments += [*(f"-D{macro}" for macro in macros), *(f"-I{folder}" for folder in (*near, *folders))]
    code = _run(compiler, arguments, compiled, text, files, source, None if copied else root)
    if optimize:
        code = spirv_tools.optimize(code, target_env)
    # The compiler read the files after they were read here.
    if ingredients()[2] == key:
        entry.store(code)
    return code


def _hint() -> str:
    return f"{install_hint('glslang')} Or set PUMICE_GLSLC to the path of glslangValidator or glslc."


def _glslc_target(target_env: str) -> list[str]:
    """glslc's arguments for a target environment: it names Vulkan and SPIR-V apart."""
    if target_env.startswith("vulkan"):
        return [f"--target-env={target_env}"]
    vulkan = _VULKAN_OF_SPIRV.get(int(target_env[-1]), "vulkan1.0")
    return [f"--target-env={vulkan}", f"--target-spv={target_env.replace('spirv', 'spv')}"]


def _macros(defines: Mapping[str, str | int]) -> list[str]:
    macros = []
    for name, value in sorted(defines.items()):
        text = str(int(value)) if isinstance(value, int) else value
        if not _IDENTIFIER.fullmatch(name):
            raise InvalidArgumentError(f"expected an identifier as the name of a define, got {shown(name)}")
        if any(character in text for character in "\n\r\0"):
            raise InvalidArgumentError(f"expected one line as the value of the define {name}, got {shown(text)}")
        macros.append(f"{name}={text}")
    return macros


def _run(
    compiler: GlslCompiler,
    arguments: Sequence[str],
    compiled: bytes,
    text: bytes,
    files: Mapping[Path, bytes],
    source: str | Path,
    in_place: Path | None,
) -> bytes:
    """The module; ``in_place`` is the file to compile, ``None`` to compile ``compiled`` as a file of its own."""
    with tempfile.TemporaryDirectory(prefix="pumice-glsl-") as name:
        folder = Path(name).resolve()
        if in_place is None:
            (folder / _TEXT_NAME).write_bytes(compiled)
        output = folder / "out.spv"
        input_name = str(in_place) if in_place else _TEXT_NAME
        # In a folder of its own a text always has the same name, so debug information is reproducible.
        result = spirv_tools.run_tool(compiler.path, [*arguments, "-o", str(output), input_name], cwd=folder)
        code = output.read_bytes() if output.is_file() else b""
        if result.returncode == 0 and code[:4] in (_SPIRV_MAGIC, _SPIRV_MAGIC[::-1]):
            return code
        names = {input_name: str(source) if isinstance(source, Path) else "<source>"}
        texts = {input_name: text, **{str(path): content for path, content in files.items()}}
        if isinstance(source, Path):  # a copy has the file's own name in its #line
            names[str(absolute(source))], texts[str(absolute(source))] = str(source), text
        raise _compile_error(compiler, result, folder, names, texts)


def _compile_error(
    compiler: GlslCompiler,
    result: subprocess.CompletedProcess[bytes],
    folder: Path,
    names: Mapping[str, str],
    texts: Mapping[str, bytes],
) -> InvalidArgumentError:
    """One error with file, line and the source line of each mistake.

    ``names`` and ``texts`` are what to call files and what is in them, by the compiler's names; the source is first.
    """
    said = "\n".join(stream.decode("utf-8", "replace") for stream in (result.stdout, result.stderr))
    pattern = _GLSLC_ERROR if compiler.is_glslc else _GLSLANG_ERROR
    entries = []
    for match in filter(None, map(pattern.match, said.splitlines())):
        file, line, message = match[1], int(match[2]), match[3].strip()
        if message.endswith("compilation terminated"):
            continue
        text = texts.get(file, texts.get(str(absolute(folder / file)), b""))
        entries.append((f"{names.get(file, file)}:{line}", message, _excerpt(text, line, message)))
    hint = f"\n(compiled with {compiler.version})"
    source = next(iter(texts.values()))
    if b"\n" not in source and source.endswith((b".comp", b".glsl")):
        hint += "\nthe source looks like a file name: pass a file as a pathlib.Path"
    for marked in (name for name, text in texts.items() if text.startswith(BYTE_ORDER_MARK)):
        hint += f"\n{marked} starts with a byte order mark, which the compiler refuses: save it as UTF-8 without one"
    if not entries:
        return InvalidArgumentError(f"GLSL does not compile: {spirv_tools.tool_message(result)}{hint}")
    parts = [entries[0][1] + entries[0][2]]
    parts += [f"{where}: {message}{excerpt}" for where, message, excerpt in entries[1:_SHOWN_ERRORS]]
    if len(entries) > _SHOWN_ERRORS:
        parts.append(f"... and {len(entries) - _SHOWN_ERRORS} more errors")
    return InvalidArgumentError("\n".join(parts) + hint, location=entries[0][0])


def _excerpt(text: bytes, line: int, message: str) -> str:
    lines = text.decode("utf-8", "replace").splitlines()
    if not 0 < line <= len(lines):
        return ""
    content = lines[line - 1].expandtabs(4)[:200]
    excerpt = f"\n{line:6} | {content}"
    # The compilers give no column; the quoted token says where to look.
    if token := _QUOTED.match(message):
        found = re.search(rf"(?<!\w){re.escape(token[1])}(?!\w)", content)
        if found:
            excerpt += f"\n       | {' ' * found.start()}{'^' * len(found[0])}"
    return excerpt
