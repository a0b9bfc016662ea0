"""The state that the functions of a module share while they are written."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.lazy_dataclass import dataclass
from ...vm.bytecode.debug_database import FileLineCol
from ..ir.operation import Location
from ..ir.printer import source_line
from ..ir.source import SourceText, printable
from ..kernels.kernel import Kernel
from .rodata import Rodata


@dataclass(frozen=True, slots=True)
class ModuleContext:
    """The state that the functions of a module share while they are written.

    Attributes:
        kernels: by entry point, ``executable::@function``.
        executables: names of the globals that hold the kernels' executables, by entry point.
        rodata: constants of the module.
        source: the program's text, whose lines the debug database names.
    """

    kernels: Mapping[str, Kernel]
    executables: Mapping[str, str]
    rodata: Rodata
    source: SourceText

    def place(self, location: Location) -> FileLineCol | None:
        """Returns a location as the debug database has it."""
        line = source_line(self.source, location)
        return None if line is None else FileLineCol(printable(line[0]), line[1], line[2])
