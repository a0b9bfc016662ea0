"""Reading and printing programs of all dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.operation import Operation
from ...ir.parser import Parser, ReadableSyntax
from ...ir.printer import Printer
from ...ir.source import SourceText
from ...ir.syntax import CustomSyntax, ReadSyntax, Syntax
from .arith import ARITH_SYNTAX
from .builtin import BUILTIN
from .check import CHECK_SYNTAX
from .chlo import MHLO
from .executables import EXECUTABLES
from .hlo import HLO
from .scf import SCF_SYNTAX
from .sequencer import SEQUENCER
from .spirv_parser import SPIRV
from .tensor import TENSOR_SYNTAX

_FOREIGN: Final = {**ARITH_SYNTAX, **CHECK_SYNTAX, **SCF_SYNTAX, **TENSOR_SYNTAX}

SYNTAXES: Final[Mapping[str, Syntax | CustomSyntax]] = {**BUILTIN, **HLO, **EXECUTABLES, **SEQUENCER, **SPIRV}

READ: Final[Mapping[str, ReadableSyntax]] = {
    **{name: ReadSyntax(parse) for name, parse in _FOREIGN.items()},
    "builtin.unrealized_conversion_cast": ReadSyntax(TENSOR_SYNTAX["tensor.cast"]),
    **MHLO,
    **SYNTAXES,
}
"""Dialects in which programs may be written. Dialects that cannot be printed are converted first."""


def parse(text: str, file_name: str = "<text>", syntaxes: Mapping[str, ReadableSyntax] = READ) -> list[Operation]:
    """Reads the operations of a program's text: usually one module, or functions.

    Raises:
        CompileError: the text has a syntax error; the error is located at the first.
    """
    return Parser(SourceText(text, file_name), syntaxes).program()


def to_text(operations: Sequence[Operation], generic: bool = False, source: SourceText | None = None) -> str:
    """Prints operations as text that ``parse`` reads.

    Args:
        operations: the operations.
        generic: whether to use the generic form.
        source: the text of the operations, for their locations; without it these are not printed.
    """
    return Printer({} if generic else SYNTAXES, source).program(operations)
