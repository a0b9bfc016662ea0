"""The state that the functions of a module share while they are written, and its constants."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.lazy_dataclass import dataclass
from ...vm.bytecode.debug_database import FileLineCol
from ..ir.operation import Location
from ..ir.printer import source_line
from ..ir.source import SourceText, printable
from ..kernels.kernel import Kernel
from ..passes.sequencing.steps import Buffer


class Rodata:
    """Constants of a module without duplicates: texts, blobs, and a pool of tensors that is uploaded as one buffer."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._ordinals: dict[bytes, int] = {}
        self.pool: bytearray = bytearray()
        self._offsets: dict[Buffer, int] = {}
        self._contents: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        """Adds a blob; returns its ordinal."""
        if data not in self._ordinals:
            self._ordinals[data] = len(self.blobs)
            self.blobs.append(data)
        return self._ordinals[data]

    def text(self, value: str) -> int:
        """Adds a text; returns its ordinal."""
        return self.add(value.encode())

    def add_constant(self, buffer: Buffer, data: bytes) -> None:
        """Adds a tensor to the pool."""
        if data not in self._contents:
            self.pool += bytes(-len(self.pool) % 256)
            self._contents[data] = len(self.pool)
            self.pool += data
        self._offsets[buffer] = self._contents[data]

    def constant_offset(self, buffer: Buffer) -> int:
        """Returns the offset of a tensor in the pool, in bytes."""
        return self._offsets[buffer]


@dataclass(frozen=True, slots=True)
class ModuleContext:
    """The state that the functions of a module share while they are written.

    Attributes:
        kernels: the kernels by entry point, ``executable::@function``.
        executables: the names of the globals that hold the kernels' executables, by entry point.
        rodata: the constants of the module.
        source: the program's text, whose lines the debug database names.
    """

    kernels: Mapping[str, Kernel]
    executables: Mapping[str, str]
    rodata: Rodata
    source: SourceText

    def place(self, location: Location) -> FileLineCol | None:
        """Returns a location in the debug database's form."""
        line = source_line(self.source, location)
        return None if line is None else FileLineCol(printable(line[0]), line[1], line[2])
