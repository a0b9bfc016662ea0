"""Where a kernel's SPIR-V comes from: bytes, a SPIR-V file, a GLSL file, or GLSL text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..hal_vulkan import ShaderModuleReflection, SpecializationValue, compile_glsl
from ..status import InvalidArgumentError, NotFoundError, PermissionDeniedError, UnavailableError

__all__ = ["load_shader", "specialization_by_id"]

_GLSL_SUFFIXES: Final = (".comp", ".glsl")


def load_shader(
    source: str | Path | bytes,
    *,
    defines: Mapping[str, str | int],
    include_dirs: Sequence[str | Path],
    minor: int = 2,
) -> tuple[bytes, str]:
    """SPIR-V and a name for a kernel's source; see ``Device.load_kernel``.

    Raises:
        NotFoundError: no such file.
        InvalidArgumentError: neither GLSL nor SPIR-V, or GLSL that does not compile.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), "kernel"
    target = f"vulkan1.{min(minor, 3)}"
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("#version")):
        return compile_glsl(source, defines=defines, include_dirs=include_dirs, target_env=target), "kernel"
    path = Path(source)
    if path.suffix in _GLSL_SUFFIXES:
        if not path.is_file():
            raise NotFoundError(f"no such file: {path}")
        return compile_glsl(path, defines=defines, include_dirs=include_dirs, target_env=target), path.stem
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"no such file: {path}") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"{path} cannot be read: {error.strerror}") from None
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror or error}") from None
    if path.suffix != ".spv" and data[:4] not in (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03"):
        raise InvalidArgumentError(f"{path} is no kernel: expected SPIR-V (.spv) or GLSL ({', '.join(_GLSL_SUFFIXES)})")
    return data, path.stem


def specialization_by_id(
    reflection: ShaderModuleReflection, values: Mapping[int | str, SpecializationValue]
) -> dict[int, SpecializationValue]:
    """Specialization values with names replaced by ids."""
    ids = {c.name: c.constant_id for c in reflection.specialization_constants if c.name}
    by_id: dict[int, SpecializationValue] = {}
    for key, value in values.items():
        if isinstance(key, str):
            if key not in ids:
                known = ", ".join(
                    f"{c.constant_id} ({c.name or 'unnamed'})" for c in reflection.specialization_constants
                )
                raise NotFoundError(f"the shader has no specialization constant {key!r}; it has: {known or 'none'}")
            key = ids[key]
        by_id[key] = value
    return by_id
