"""The contents of a module file as plain immutable values: names, functions, types, constants, bytecode.

``read_module`` makes a ``ModuleDef`` from a file and ``write_module`` makes a file from a ``ModuleDef``. Beyond the
reader's checks nothing is verified here: the verifier checks the bytecode, a context resolves names.

The fields are those of IREE's runtime/src/iree/schemas/bytecode_module_def.fbs, releases 3.0 to 3.13.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import IncompatibleError
from .debug_database import DebugDatabase

# In files: the fields of a ``FunctionDescriptor``, and the flags of imports and dependencies.
DESCRIPTOR: Final = struct.Struct("<iiI2xhhh")
REQUIRED: Final = 1
OPTIONAL: Final = 2


class Feature(enum.IntFlag):
    """Features of the VM that a module or a function needs; the bits of ``requirements``."""

    EXT_F32 = 1
    EXT_F64 = 2
    YIELD = 4
    UNWIND = 8


def check_features(owner: str, requirements: int) -> None:
    """Raises IncompatibleError for bits that are not in ``Feature``."""
    unknown = requirements & ~int(Feature.EXT_F32 | Feature.EXT_F64 | Feature.YIELD | Feature.UNWIND)
    if unknown:
        raise IncompatibleError(
            f"{owner}: expected features EXT_F32, EXT_F64, YIELD and UNWIND, got unknown {unknown:#x}; compile with a "
            "release this version knows"
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's calling convention and reflection attributes."""

    calling_convention: str  # in the form for ``CallingConvention.parse``; empty if the file has none
    attributes: Mapping[str, str] = field(default_factory=dict)  # such as ``iree.abi.declaration``


@dataclass(frozen=True, slots=True)
class DependencyDef:
    """A module from which this module imports."""

    name: str
    minimum_version: int = 0  # the lowest accepted version
    required: bool = True  # whether loading fails without it


@dataclass(frozen=True, slots=True)
class ImportDef:
    """A function of another module."""

    name: str  # with the module's, ``hal.fence.await``
    signature: Signature  # how this module calls it
    required: bool = True  # whether loading fails without it


@dataclass(frozen=True, slots=True)
class ExportDef:
    """A function that other modules may call."""

    name: str  # without the module's
    ordinal: int  # index into ``ModuleDef.functions``


@dataclass(frozen=True, slots=True)
class FunctionDescriptor:
    """The position of a function's bytecode, and the size of its frame."""

    offset: int  # of the first byte in ``ModuleDef.bytecode``; a multiple of 8
    length: int  # in bytes, at least 1
    requirements: int  # bits of ``Feature``
    block_count: int  # number of basic blocks, at least 1
    i32_register_count: int  # 32-bit registers, 0 to 32,767; an i64 or f64 takes two
    ref_register_count: int  # reference registers, 0 to 16,384


@dataclass(frozen=True, slots=True)
class ModuleDef:
    """A module, as its file describes it. Modules are equal if all their fields are, including bytes.

    Attributes:
        name: the module's name.
        version: the module's version, compared with the minimum that dependent modules require.
        requirements: the bits of ``Feature``.
        attributes: the reflection of the module as a whole.
        types: the full names of the types that bytecode refers to by index: ``i32``, ``!hal.buffer``.
        dependencies: the modules that this one imports from.
        imports: the functions that bytecode refers to by index, with bit 31 set.
        exports: the functions that others may call.
        signatures: the signatures, one for each function.
        rodata: the constants, each a read-only view of the file's bytes.
        rwdata_sizes: the sizes in bytes of zeroed memory segments; no known compiler makes any.
        global_bytes: the size of the primitive globals of a context, in bytes. It comes from the file, where it may be
            as large as 2³¹ - 1 even in a tiny file, so allocate by use.
        global_refs: the number of reference globals of a context; the same applies.
        functions: the descriptors of all functions, including internal ones.
        bytecode_version: the version as major << 16 | minor; ``Isa.for_version`` checks whether it is known.
        bytecode: a read-only view of all functions' bytecode.
        debug: the source locations, or ``None`` for a stripped module.
    """

    name: str
    version: int = 0
    requirements: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    dependencies: tuple[DependencyDef, ...] = ()
    imports: tuple[ImportDef, ...] = ()
    exports: tuple[ExportDef, ...] = ()
    signatures: tuple[Signature, ...] = ()
    rodata: tuple[memoryview, ...] = ()
    rwdata_sizes: tuple[int, ...] = ()
    global_bytes: int = 0
    global_refs: int = 0
    functions: tuple[FunctionDescriptor, ...] = ()
    bytecode_version: int = 0
    bytecode: memoryview = field(default_factory=lambda: memoryview(b""))
    debug: DebugDatabase | None = None

    def function_name(self, ordinal: int) -> str | None:
        """Returns the name of the first export of a function; ``None`` for an internal one."""
        return next((export.name for export in self.exports if export.ordinal == ordinal), None)
