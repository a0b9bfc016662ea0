"""Sources to SPIR-V with installed compilers, and a cache on disk.

`compile_source` reads the source and every file that it can include, hashes them with the options and the compiler's
version, and looks the hash up in the cache. If it is not there, the compiler runs, and the result is stored unless a
file changed meanwhile. Thread-safe; two threads that compile the same source at once both succeed.

Environment: the compilers of `find`, and for the cache
    ``PUMICE_CACHE_DIR``: the folder of the cache, instead of the user's cache directory. ``PUMICE_CACHE``: ``0``
    switches it off.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...base.cache import CachedFile
from ...status import InvalidArgumentError, UnknownError, shorten, shown
from ..checks import tools as spirv_tools
from ..checks.vocabulary import without_new_languages
from .bindings import with_bindings
from .commands import Dxc
from .find import find_compiler
from .includes import BYTE_ORDER_MARK, absolute, included_files, read_source
from .language import TARGET_ENVIRONMENTS, Language
from .opengl import with_vulkan_rules
from .overrides import OverrideValue
from .source_compiler import Compiler, Job, compile_error

_STAGES: Final = ("comp", "vert", "tesc", "tese", "geom", "frag")
_TEXT_NAME: Final = "source"
_SPIRV_MAGIC: Final = b"\x03\x02\x23\x07"
_ERROR: Final = re.compile(r"^(?:fatal |internal )?error\b", re.MULTILINE | re.IGNORECASE)
_MAX_MESSAGE: Final = 1000
_NO_DEFINES: Final[Mapping[str, str | int]] = MappingProxyType({})
_NO_OVERRIDES: Final[Mapping[int | str, OverrideValue]] = MappingProxyType({})
_NO_PARTS: Final[Mapping[str, str]] = MappingProxyType({})
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Marks that only sources of one language have.
_MARKS: Final = (
    (re.compile(rb"^\s*#version\b", re.MULTILINE), (Language.GLSL,)),
    (re.compile(rb"\[\s*numthreads\b"), (Language.HLSL, Language.SLANG)),
    (re.compile(rb"@compute\b"), (Language.WGSL,)),
    (re.compile(rb"^\s*OpCapability\b", re.MULTILINE), (Language.ASSEMBLY,)),
)


def compile_source(
    source: str | Path,
    language: Language,
    *,
    stage: str = "comp",
    entry_point: str | None = None,
    defines: Mapping[str, str | int] = _NO_DEFINES,
    include_dirs: Sequence[str | Path] = (),
    target_env: str = "vulkan1.2",
    optimize: bool = False,
    debug: bool = False,
    parts: Mapping[str, str] = _NO_PARTS,
    overrides: Mapping[int | str, OverrideValue] = _NO_OVERRIDES,
) -> bytes:
    """Compiles a source to a SPIR-V module.

    Args:
        source: the text (``str``) or the file (``Path``); a ``str`` is never taken for a file name. A UTF-8 byte order
            mark at its start is skipped.
        stage: the shader stage of GLSL: ``comp``, ``vert``, ``tesc``, ``tese``, ``geom`` or ``frag``; other languages
            have ``comp``.
        entry_point: the entry function of HLSL and Slang; ``None`` takes all functions marked as entry points. Other
            languages always keep all entry points.
        defines: the macros by name; an empty string defines a name without a value.
        include_dirs: the folders for ``#include``, searched after the including file's own. GLSL need not enable an
            extension for it.
        target_env: the Vulkan version, which fixes the SPIR-V version (``vulkan1.1``: 1.3, ``vulkan1.2``: 1.5), or a
            SPIR-V version (``spirv1.4``).
        optimize: whether to run ``spirv-opt -O`` over the result.
        debug: whether to keep the source and line numbers in the module.
        overrides: the values of WGSL's overrides, by name or id.
        parts: the texts under each named ``#line`` of the source, by that name, for errors.

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
    if target_env not in TARGET_ENVIRONMENTS:
        raise InvalidArgumentError(
            f"expected a target_env of {', '.join(TARGET_ENVIRONMENTS)}, got {shown(target_env)}"
        )
    if not language.has_preprocessor and (defines or include_dirs):
        raise InvalidArgumentError(
            f"{language.title} has no preprocessor: it takes no defines and no folders to include from"
        )
    if not language.compiles_entry_point:
        entry_point = None
    elif entry_point is not None and not _IDENTIFIER.fullmatch(entry_point):
        raise InvalidArgumentError(f"expected an identifier as the entry point, got {shown(entry_point)}")
    root = absolute(source) if isinstance(source, Path) else None
    macros = _macros(defines)
    folders = [absolute(folder) for folder in include_dirs]
    compiler = find_compiler(language)
    optimizer = spirv_tools.version() if optimize else ""
    job = Job(
        language=language,
        stage=stage,
        entry_point=entry_point,
        macros=macros,
        folders=folders,
        target_env=target_env,
        debug=debug,
        overrides=dict(overrides),
    )

    def ingredients() -> tuple[bytes, dict[Path, bytes], object]:
        text = read_source(source, language)
        files = included_files(source, folders, text=text, language=language) if language.has_preprocessor else {}
        name = str(root) if debug else ""
        # The first word names the form of the command lines: another word makes earlier entries of the cache void.
        options = ["sources-7", compiler.version, optimizer, name, repr(job)]
        return text, files, (options, text, files)

    text, files, key = ingredients()
    entry = CachedFile("glsl" if language is Language.GLSL else language.value, key)
    cached = entry.load()
    if cached is not None:
        return cached
    code = _run(compiler, job, text, files, source, parts)
    if language.compiles_entry_point:
        code = with_bindings(code, [text, *files.values()])
    if job.is_compute_glsl:
        code = with_vulkan_rules(code)
    if optimize:
        code = spirv_tools.optimize(without_new_languages(code), target_env.replace("spirv", "spv"))
    # The compiler reads the files after they are read here.
    if ingredients()[2] == key:
        entry.store(code)
    return code


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
    compiler: Compiler,
    job: Job,
    text: bytes,
    files: Mapping[Path, bytes],
    source: str | Path,
    parts: Mapping[str, str],
) -> bytes:
    root = absolute(source) if isinstance(source, Path) else None
    shown_name = str(source) if root is not None else "<source>"
    compiled = compiler.prepared(text.removeprefix(BYTE_ORDER_MARK), job, root if job.debug else None)
    with tempfile.TemporaryDirectory(prefix="pumice-source-") as temporary:
        folder = Path(temporary).resolve()
        if root is not None and compiled == text and root.suffix in job.language.suffixes:
            name = str(root)
        else:
            # A file that has to be changed is compiled as a copy, in a folder apart from its neighbours. In a folder of
            # its own a text always has the same name, so debug information is reproducible.
            name = _TEXT_NAME + job.language.suffixes[0]
            (folder / name).write_bytes(compiled)
            near = [root.parent] if root is not None else []
            job = replace(job, folders=[*near, *job.folders])
        output = folder / "out.spv"
        try:
            result = compiler.run(job, name, output)
        except UnknownError as crash:
            raise UnknownError(f"{compiler.version} crashed on {shown_name}: {crash.message}") from None
        code = output.read_bytes() if output.is_file() else b""
        if result.returncode == 0 and code[:4] in (_SPIRV_MAGIC, _SPIRV_MAGIC[::-1]):
            return compiler.finished(code, job)
        said = "\n".join(stream.decode("utf-8", "replace") for stream in (result.stdout, result.stderr))
        texts = {str(path): content for path, content in files.items()}
        texts |= {name: part.encode("utf-8", "replace") for name, part in parts.items()}
        own = [name, str(folder / name), ""] + ([str(root)] if root is not None else [])  # a copy may name its original
        texts |= dict.fromkeys(own, text)
        reported = compiler.diagnostics(said)
        # Relative names refer to the folder of the compilation.
        placed = [
            diagnostic
            if diagnostic.file in texts
            else replace(diagnostic, file=str(absolute(folder / diagnostic.file)))
            for diagnostic in reported
        ]
        notes = _notes(compiler, job.language, text, texts)
        notes = [advice, *notes] if (advice := compiler.advice(said)) else notes
        error = compile_error(placed, dict.fromkeys(own, shown_name), texts, notes)
        if error is not None:
            raise error
        start = _ERROR.search(said)  # warnings come before errors
        message = shorten(said[start.start() :], _MAX_MESSAGE) if start else spirv_tools.tool_message(result)
        message = "\n".join(line for line in message.splitlines() if line.strip())
        where = shown_name if root is not None else None
        raise InvalidArgumentError(
            "\n".join([f"{job.language.title} does not compile: {message}", *notes]), location=where
        )


def _notes(compiler: Compiler, language: Language, source: bytes, texts: Mapping[str, bytes]) -> list[str]:
    notes = [f"(compiled with {compiler.version})"]
    if language is Language.HLSL and not isinstance(compiler, Dxc):
        notes.append("dxc takes more of HLSL: if the source is right, install dxc, or name it in PUMICE_HLSLC")
    notes += [
        f"the source looks like {' or '.join(candidate.title for candidate in others)}; if it is, say so: language "
        f"{' or '.join(candidate.value for candidate in others)} (language=, --language)"
        for mark, others in _MARKS
        if mark.search(source) and language not in others
    ]
    if b"\n" not in source and source.endswith((b".comp", b".glsl", b".hlsl", b".slang", b".wgsl", b".spvasm")):
        notes.append("the source looks like a file name: pass a file as a pathlib.Path")
    marked = [name for name, text in texts.items() if text.startswith(BYTE_ORDER_MARK) and text is not source]
    notes += [
        f"{name} starts with a byte order mark, which the compiler refuses: save it as UTF-8 without one"
        for name in marked
    ]
    return notes
