"""Reading and printing programs of all dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..ir.operation import Operation
from ..ir.parser import Parser
from ..ir.printer import Printer
from ..ir.source import SourceText
from ..ir.syntax import CustomSyntax, Syntax
from .builtin import BUILTIN
from .hlo_syntax import HLO
from .sequencer import SEQUENCER

SYNTAXES: Final[Mapping[str, Syntax | CustomSyntax]] = {**BUILTIN, **HLO, **SEQUENCER}


def parse(
    text: str, file_name: str = "<text>", syntaxes: Mapping[str, Syntax | CustomSyntax] = SYNTAXES
) -> list[Operation]:
    """The operations of a program's text: usually one module, or functions.

    Raises:
        CompileError: at the first place that is not as the grammar wants it.
    """
    return Parser(SourceText(text, file_name), syntaxes).program()


def to_text(operations: Sequence[Operation], generic: bool = False, with_locations: bool = False) -> str:
    """Operations as text that ``parse`` reads."""
    return Printer({} if generic else SYNTAXES, with_locations).program(operations)
