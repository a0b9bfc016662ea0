"""Writes reads and writes of a function's registers as LLVM IR, and the exits of the function.

Registers are LLVM values within a block, and are in their homes between blocks. So an exit stores little, any header
can be entered, and LLVM has little work. docs/design/vm.md lists other attempts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from ..bytecode.decoder import Instruction
from ..translation.basic_block import Block, Variable
from ..types.numerics import bitcast_f32_i32, bitcast_f64_i64
from .layout import Layout

if TYPE_CHECKING:
    from ..translation.analysis import FunctionAnalysis

TYPES: Final = {"i": "i32", "I": "i64", "f": "float", "F": "double", "r": "i64"}


class Value(NamedTuple):
    """The value of a variable in the current block."""

    text: str
    is_bit: bool = False  # whether it is an i1 that represents an i32


class HomeWriter:
    """Writes lines, registers, and the blocks that exit the function."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.analysis: FunctionAnalysis = layout.analysis
        self.lines: list[str] = []
        self.stubs: list[str] = []  # the blocks that exit the function
        self.homed: set[str] = set()  # homes that have an address in the code
        self.values: dict[str, Value] = {}  # in the current block
        self._dirty: dict[str, int] = {}  # names whose homes are out of date, with their registers
        self._count = 0
        self._literals = {  # the constants of variables that are written once
            operands.writes[0]: literal(instruction, operands.writes[0][0])
            for instruction, operands in zip(self.analysis.instructions, self.analysis.operands, strict=True)
            if self.analysis.constants and operands.writes and operands.writes[0] in self.analysis.constants
        }

    def begin(self) -> None:
        """Begins a block: all values are in their homes."""
        self.values, self._dirty = {}, {}

    def fresh(self) -> str:
        """Returns an unused name, without its ``%``."""
        self._count += 1
        return f"t{self._count}"

    @staticmethod
    def address(word: int) -> str:
        """Returns the address of a word of the frame."""
        return f"getelementptr i64, ptr %frame, i64 {word}"

    def line(self, text: str) -> None:
        """Adds instructions."""
        self.lines.append(f"  {text}")

    # -- variables -----------------------------------------------------------------------------------

    def read_name(self, name: str) -> Value:
        """Returns the value of a home."""
        value = self.values.get(name)
        if value is None:
            text = f"%{self.fresh()}"
            self.homed.add(name)
            self.line(f"{text} = load {TYPES[name[0]]}, ptr %h_{name}")
            value = self.values[name] = Value(text)
        return value

    def _number(self, value: Value) -> str:
        """Returns a value as an i32, converted if it is an i1."""
        if not value.is_bit:
            return value.text
        text = f"%{self.fresh()}"
        self.line(f"{text} = zext i1 {value.text} to i32")
        return text

    def read(self, variable: Variable) -> str:
        """Returns the value of a variable: a name or a literal."""
        kind, number = variable
        literal = self._literals.get(variable)
        if literal is not None:
            return literal
        name = f"{kind}{number}"
        value = self.read_name(name)
        if value.is_bit:
            value = self.values[name] = Value(self._number(value))
        return value.text

    def condition(self, variable: Variable) -> str:
        """Returns a variable as an i1."""
        value = self.values.get(f"{variable[0]}{variable[1]}")
        if value is not None and value.is_bit:
            return value.text
        number = self.read(variable)
        text = f"%{self.fresh()}"
        self.line(f"{text} = icmp ne i32 {number}, 0")
        return text

    def assign(self, variable: Variable, value: Value) -> None:
        """Assigns a value to a variable, whose home is stored at the end of the block."""
        name = f"{variable[0]}{variable[1]}"
        self.values[name] = value
        self._dirty[name] = self.analysis.mask([variable])

    def flushed(self, live: int) -> list[str]:
        """Returns lines that store live registers in their homes."""
        lines: list[str] = []
        for name, mask in self._dirty.items():
            if not mask & live:
                continue
            value = self.values[name]
            text = value.text
            if value.is_bit:
                text = f"%{self.fresh()}"
                lines.append(f"  {text} = zext i1 {value.text} to i32")
            self.homed.add(name)
            lines.append(f"  store {TYPES[name[0]]} {text}, ptr %h_{name}")
        return lines

    # -- leaving -------------------------------------------------------------------------------------

    def stub(self, lines: Iterable[str], where: int, depth: str = "1") -> str:
        """Adds a block that exits the function; returns its label."""
        label = f"x{self.fresh()}"
        self.stubs.append(f"{label}:")
        self.stubs += lines
        self.stubs += [f"  store i64 {where}, ptr %frame", f"  ret i32 {depth}"]
        return label

    def guard(self, bad: str, block: Block, index: int) -> None:
        """Exits before an instruction if a condition holds."""
        live = self.analysis.live_after(block)[index - 1 - block.start]
        label, on = self.stub(self.flushed(live), index), f"c{self.fresh()}"
        self.line(f"br i1 {bad}, label %{label}, label %{on}")
        self.lines.append(f"{on}:")


def literal(instruction: Instruction, kind: str) -> str:
    """Returns the constant of an instruction."""
    value = cast("int | float", 0 if instruction.operation.mnemonic.endswith(".zero") else instruction.values[0])
    if kind == "f":
        return f"bitcast (i32 {bitcast_f32_i32(float(value))} to float)"
    if kind == "F":
        return f"bitcast (i64 {bitcast_f64_i64(float(value))} to double)"
    return str(int(value))
