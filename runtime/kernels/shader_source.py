"""Sources of a kernel's SPIR-V: bytes, a SPIR-V file, or source code in a file or a text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...base.files import reading_errors
from ...spirv.sources.language import Language, SourceOptions, described_languages, language_of
from ...status import InvalidArgumentError, NotFoundError, PumiceError

_SPIRV_MAGIC: Final = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_DEFAULTS: Final = SourceOptions()


def load_shader(source: str | Path | bytes, options: SourceOptions = _DEFAULTS, *, minor: int = 2) -> tuple[bytes, str]:
    """Returns SPIR-V and the name of a kernel's source, for Vulkan 1.``minor``; see ``Device.load_kernel``.

    The name is that of the file, ``""`` for texts and modules.
    """
    language = options.language
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        if data[:4] not in _SPIRV_MAGIC and (language is not None or b"#version" in data):
            return _compiled(data.decode("utf-8", errors="replace"), language, options, minor), ""
        _check_no_options("the given module", options)
        return data, ""
    if not isinstance(source, (str, Path)):
        raise InvalidArgumentError(
            f"a kernel is loaded from a path, a text or the bytes of a SPIR-V module, got {type(source).__name__}"
        )
    if isinstance(source, str) and (not source or "\0" in source):
        raise InvalidArgumentError(f"{source!r} is not the path of a kernel")
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("#version")):
        return _compiled(source, language, options, minor), ""
    path = Path(source)
    if language is None:
        language = language_of(path)
    if language is not None:
        try:
            is_file = path.is_file()
        except OSError as error:
            raise InvalidArgumentError(f"{str(path)[:80]!r} is not a path: {error.strerror}") from None
        if not is_file:
            raise NotFoundError(f"no such file: {path}")
        return _compiled(path, language, options, minor), path.stem
    with reading_errors(path):
        data = path.read_bytes()
    if path.suffix != ".spv" and data[:4] not in _SPIRV_MAGIC:
        raise InvalidArgumentError(
            f"{path} is not a kernel: expected SPIR-V (.spv) or {described_languages()}; for a source of another name, "
            "say its language (language=, --language)"
        )
    _check_no_options(str(path), options)
    return data, path.stem


def _check_no_options(name: str, options: SourceOptions) -> None:
    """Raises for options that only apply to compilers."""
    options_given = [word for word in ("defines", "include_dirs") if getattr(options, word)]
    if options_given:
        raise InvalidArgumentError(
            f"{' and '.join(options_given)} are for sources; {name} is SPIR-V, which is compiled already"
        )


def _compiled(source: str | Path, language: Language | None, options: SourceOptions, minor: int) -> bytes:
    from ...spirv.sources.compile import compile_source  # imported here: few programs need it

    return compile_source(
        source,
        language or Language.GLSL,
        entry_point=options.entry_point,
        defines=options.defines,
        include_dirs=options.include_dirs,
        target_env=f"vulkan1.{min(minor, 3)}",
        debug=options.debug,
        overrides=options.overrides,
    )


def has_overrides(source: str | Path | bytes, language: Language | None) -> bool:
    """Whether a source is WGSL: the values of its constants are for the compiler, not for the module."""
    if language is None and isinstance(source, (str, Path)) and "\n" not in str(source):
        language = language_of(Path(source))
    return language is Language.WGSL


def source_text(source: str | Path | bytes, options: SourceOptions = _DEFAULTS) -> str:
    """Returns the text that `load_shader` compiled, with the files that it includes; ``""`` for a SPIR-V module."""
    from ...spirv.sources.includes import included_files, read_source  # imported here: only errors need it

    text: str | Path
    if isinstance(source, (bytes, bytearray, memoryview)):
        if bytes(source[:4]) in _SPIRV_MAGIC:
            return ""
        text = bytes(source).decode("utf-8", errors="replace")
    elif isinstance(source, str) and ("\n" in source or source.lstrip().startswith("#version")):
        text = source
    else:
        text = Path(source)
        if options.language is None and language_of(text) is None:
            return ""
    try:
        parts = [read_source(text), *included_files(text, options.include_dirs).values()]
    except PumiceError:  # a file that has changed since
        return ""
    return b"\n".join(parts).decode("utf-8", errors="replace")
