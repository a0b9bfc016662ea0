"""Modules as files and as data: reading, checking, verifying and writing. The instruction set as one table.

Read: archive, calling_convention, debug_database, isa_tables, module_def, declaration, isa, decoder, encoder,
function_verifier, reader, verifier, writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .archive import ModuleArchive
    from .calling_convention import CallingConvention
    from .module_def import ModuleDef
    from .reader import read_module
    from .writer import write_module

__all__ = [
    "CallingConvention",
    "ModuleArchive",
    "ModuleDef",
    "read_module",
    "write_module",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".archive": ("ModuleArchive",),
            ".calling_convention": ("CallingConvention",),
            ".module_def": ("ModuleDef",),
            ".reader": ("read_module",),
            ".writer": ("write_module",),
        },
    )
