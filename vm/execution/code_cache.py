"""The disk cache of a module: the fact that its bytecode was verified, and its functions as Python code.

Entries are keyed by the module's content, by the code that verifies and translates, and by the Python that compiles.
They contain code objects written by ``marshal``, which is safe only because the cache returns nothing but data written
by this user's pumice (``docs/design/cache.md``).

Thread rule: any thread.
"""

from __future__ import annotations

import marshal
import sys
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

from ...base.cache import CachedFile, digest, folder_stamp
from ..translation.expressions import Source

# Larger files are mostly constants; hashing them takes longer than verifying and translating them.
MAX_CONTENT_BYTES: Final = 64 << 20
_ROOM: Final = "vm"
_VERIFIED: Final = b"verified"


class KeptCode(NamedTuple):
    """A translated variant of a function.

    Attributes:
        source: the source of the code.
        code: the result of ``compile``.
    """

    source: Source
    code: CodeType


class CodeCache:
    """The cache entries of one module."""

    def __init__(self, content: bytes | memoryview) -> None:
        """Opens the entries for ``content``: the module's file without external constants, which affect no code."""
        self._module = digest(content)

    def is_verified(self) -> bool:
        """Whether the module was verified before."""
        return self._file("verdict").load() == _VERIFIED

    def keep_verdict(self) -> None:
        """Notes that the module was verified."""
        self._file("verdict").store(_VERIFIED)

    def load(self, variant: object, file_name: str) -> KeptCode | None:
        """Returns the code of a variant by its name; its frames show ``file_name``."""
        content = self._file(variant).load()
        if content is None:
            return None
        text, names, pcs, code = marshal.loads(content)
        return KeptCode(Source(text, names, pcs), _renamed(code, file_name))

    def store(self, variant: object, kept: KeptCode) -> None:
        """Keeps the code of a variant."""
        source, code = kept
        self._file(variant).store(marshal.dumps((source.text, source.names, source.pcs, _renamed(code, ""))))

    def _file(self, key: object) -> CachedFile:
        return CachedFile(_ROOM, (self._module, key, _made_by()))


def _renamed(code: CodeType, file_name: str) -> CodeType:
    """Returns a code object, and the code objects in it, with another file name."""
    constants = tuple(
        _renamed(constant, file_name) if isinstance(constant, CodeType) else constant for constant in code.co_consts
    )
    return code.replace(co_filename=file_name, co_consts=constants)


@cache
def _made_by() -> tuple[object, ...]:
    """Identifies the code that verifies and translates, and the Python that compiles."""
    room = Path(__file__).parents[1]
    made_by = ("bytecode", "types", "translation", "machine_code", "execution")
    stamp = folder_stamp(*(room / name for name in made_by))
    return stamp, sys.version, sys.implementation.cache_tag, sys.flags.optimize
