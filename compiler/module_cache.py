"""A cache of module files on disk."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.cache import CachedFile, digest, folder_stamp
from ..base.files import reading_errors
from .kernels.scalars.target import Target
from .origin import Origin

# The compiler is imported at its use, as cached modules do not need it.
if TYPE_CHECKING:
    from .abi.calling_convention import CallingConvention


def compile_file(
    path: Path, origin: Origin | None = None, target: Target | None = None, convention: CallingConvention | None = None
) -> bytes:
    """Returns the module of a program's file, compiled once per content, named convention and release of pumice.

    Raises: as for ``pumice.compile``.
    """
    with reading_errors(path):
        data = path.read_bytes()
    return compile_once(data, str(path), origin or Origin(), target or Target(), convention)


def compile_once(
    data: bytes, file_name: str, origin: Origin, target: Target, convention: CallingConvention | None = None
) -> bytes:
    """Returns the module of a file's contents, from the cache if present; the arguments are those of ``compile_data``.

    A user's convention is code without a key, so its modules are not cached.

    Raises: as for ``pumice.compile``.
    """
    if convention is not None:
        from .abi.calling_convention import is_named

        if not is_named(convention):
            return _compile(data, file_name, origin, target, convention)
    name = None if convention is None else convention.name
    entry = CachedFile("modules", (_made_by(), file_name, origin, target, name, digest(data)))
    module = entry.load()
    if module is None:
        module = _compile(data, file_name, origin, target, convention)
        entry.store(module)
    return module


def _compile(
    data: bytes, file_name: str, origin: Origin, target: Target, convention: CallingConvention | None
) -> bytes:
    from .pipeline import compile_data

    return compile_data(data, file_name, target, origin, convention=convention).module


@functools.cache
def _made_by() -> bytes:
    """Returns a stamp of the compiler's files."""
    compiler = Path(__file__).parent
    others = ("spirv", "formats", "hal_reference", "vm/assembly", "vm/bytecode")
    return folder_stamp(compiler, *(compiler.parent / name for name in others))
