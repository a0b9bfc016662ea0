"""The syntax of VM assembly text as plain values, and the text form of each instruction.

``parser`` and ``instruction_parser`` make these from tokens; ``assembler`` makes bytecode from them. Names of blocks,
functions, globals and types are resolved only when the bytes are made.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ..bytecode.debug_database import FileLineCol
from ..bytecode.isa import Operation
from ..bytecode.module_def import DependencyDef, ImportDef
from .lexer import Token


@dataclass(frozen=True, slots=True)
class GlobalReference:
    """A global, by its name or by its position."""

    token: Token  # the symbol, or the first token of ``.rwdata[…]`` or ``.refs[…]``
    ordinal: int | None  # byte offset or reference ordinal if the text has it, ``None`` for a name
    size: int  # in bytes, 0 for a reference


# A number (a register, an immediate's bits, an ordinal), a string, a list of numbers (branch operands are flat: source,
# destination, source, …), the name of a type, a block's label or a function's symbol, a global, the cases of a branch
# table from 0.
Cases: TypeAlias = tuple[tuple[Token, tuple[int, ...]], ...]
Value: TypeAlias = int | bytes | tuple[int, ...] | str | Token | GlobalReference | Cases


@dataclass(slots=True)
class InstructionSyntax:
    """An instruction; ``values`` is parallel to ``operation.fields``; ``location`` is the source's, if known."""

    operation: Operation
    values: tuple[Value, ...]
    location: FileLineCol | None = None


@dataclass(slots=True)
class BlockSyntax:
    """A block: its label (``None`` for an unlabelled entry block), and its instructions."""

    label: Token | None
    instructions: list[InstructionSyntax] = field(default_factory=list)


@dataclass(slots=True)
class FunctionSyntax:
    """A function, with the numbers of registers in its header and body."""

    token: Token  # its symbol
    name: str
    calling_convention: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    blocks: list[BlockSyntax] = field(default_factory=lambda: [BlockSyntax(None)])
    i32_register_count: int = 0
    ref_register_count: int = 0
    has_places: bool = False


@dataclass(slots=True)
class ModuleSyntax:
    """A whole text in its order; dictionaries are by name."""

    name: str = ""
    version: int = 0
    attributes: dict[str, str] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)  # ordinals
    dependencies: dict[str, DependencyDef] = field(default_factory=dict)
    imports: dict[str, ImportDef] = field(default_factory=dict)
    exports: dict[str, Token] = field(default_factory=dict)  # the functions' symbols
    globals: dict[str, int] = field(default_factory=dict)  # sizes in bytes; 0 for a reference
    rodata: list[bytes] = field(default_factory=list)
    functions: dict[str, FunctionSyntax] = field(default_factory=dict)


# The text of instructions after the mnemonic, by the name of their form in the instruction set. Words in angle brackets
# are fields, other words are literal. Written registers that a form does not name precede the mnemonic, ``%i0 = ``. Of
# several texts, the first whose words all occur in the line is used, otherwise the last. Forms that are not listed
# consist of all fields except written registers, in byte order, separated by commas. ``<-name>`` is a type without
# effect; ``<name/list>`` is a list type with the field as its element type.
_TEXT_FORMS: Final[dict[str, tuple[str, ...]]] = {
    "global_store": ("<value> , <byte_offset>",),
    "global_load_indirect": (".rwdata [ <byte_offset> ]", "<byte_offset>"),
    "global_store_indirect": ("<value> , .rwdata [ <byte_offset> ]", "<byte_offset> , <value>"),
    "global_load_ref": ("<global> : <type>",),
    "global_store_ref": ("<value> , <global> : <type>",),
    "global_load_indirect_ref": (".refs [ <global> ] : <type>", "<global> : <type>"),
    "global_store_indirect_ref": ("<value> , .refs [ <global> ] : <type>", "<global> : <type> , <value>"),
    "select": ("<condition> ? <true_value> : <false_value>",),
    "select_ref": ("<condition> ? <true_value> : <false_value> -> <type>",),
    "switch": ("<index> [ <values> ] else <default_value>",),
    "switch_ref": ("<index> [ <values> ] else <default_value> -> <type>",),
    "cast_any_ref": ("<operand> : <-source> -> <type>", "<operand> -> <type>"),
    "list_alloc": ("<initial_capacity> : <element_type/list>",),
    "list_get_ref": ("<list> , <index> : <type>",),
    "buffer_store": ("<value> , <target_buffer> , <target_offset>",),
    "branch": ("<dest> <operands>",),
    "cond_branch": ("<condition> , <true_dest> <true_operands> , <false_dest> <false_operands>",),
    "cond_break": ("<condition> , <dest> <operands>",),
    "branch_table": ("<index> { default : <default_dest> <default_operands> <cases> }",),
    "call": ("<callee> ( <operands> )",),
    "call_variadic": ("<callee> segments [ <segment_sizes> ] ( <operands> )",),
    "call_yieldable": ("<callee> ( <operands> ) -> <dest> ( <results> )",),
    "call_variadic_yieldable": ("<callee> segments [ <segment_sizes> ] ( <operands> ) -> <dest> ( <results> )",),
    "trace": ("<event_name> ( <operands> )", "<event_name> , <operands>", "<event_name>"),
}


@cache
def text_forms(operation: Operation) -> tuple[str, ...]:
    """Returns the texts of an instruction's fields."""
    default = " , ".join(f"<{field.name}>" for field in operation.fields if not field.is_written)
    return _TEXT_FORMS.get(operation.form, (default,))
