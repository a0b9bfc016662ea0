"""Writes operations within a block that call no function: arithmetic, globals, lists, buffers, references."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from ..bytecode.decoder import Instruction, field_value
from ..bytecode.isa import IMPORT_BIT, MOVE_BIT, FieldKind, Move
from .analysis import FunctionAnalysis, Operands
from .basic_block import Variable
from .expressions import (
    CONDITIONS,
    NONE,
    ONE,
    ZERO,
    Binary,
    Call,
    Comparison,
    Conditional,
    Display,
    Expression,
    Item,
    Keyword,
    Literal,
    Logical,
    Name,
    Unary,
    call,
    constant_of,
    is_atom,
    method,
    negated,
)
from .operations import EFFECTS, OPERATIONS, Builder, Formula, binary, compared, greater, lesser, masked, same
from .ranges import FULL, Range, fits, result_range
from .values import PendingValue, ValueWriter

_MAX_DEPTH: Final = 9  # limit of nested operations
# Operations that have the same result modulo 2**bits with unwrapped operands.
_TOLERANT: Final = {
    f"{name}.i{bits}": bits for name in ("add", "sub", "mul", "fma", "and", "or", "xor", "not") for bits in (32, 64)
} | {"trunc.i64.i32": 64}
_BITWISE: Final = frozenset(f"{name}.i{bits}" for name in ("and", "or", "xor", "not") for bits in (32, 64))
_LOGICAL: Final = frozenset({"xor.i32", "and.i32", "or.i32", "cmp.nz.i32"})
_UNBOUNDED: Final = (-(1 << 200), 1 << 200)
_FAR: Final = 1 << 20  # products with larger constants are assumed to be hashes or random numbers, mostly out of range


class OperationWriter(ValueWriter):
    """Writes operations."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        super().__init__(analysis)
        self.single: bool = False  # whether any result is rounded to f32

    def operation(self, index: int) -> None:
        """Writes an instruction that is neither a terminator, a call nor a block marker."""
        instruction = self.analysis.instructions[index]
        mnemonic = instruction.operation.mnemonic
        self.pc: int = instruction.pc
        operands = self.analysis.operands[index]
        formula = OPERATIONS.get(mnemonic)
        if formula is not None:
            self._result(index, mnemonic, formula, operands.reads, operands.writes[0])
        elif mnemonic in EFFECTS:
            self.line(EFFECTS[mnemonic](*map(self.operand, operands.reads)).python())
        elif mnemonic.startswith("const.") and "ref" not in mnemonic:
            self._constant(instruction, operands.writes[0])
        elif mnemonic.startswith("global."):
            self._global(instruction, operands)
        elif mnemonic in ("trace", "print"):
            values = Display(tuple(map(self.operand, operands.reads)))
            hook = method(self.bound("hooks"), mnemonic, Literal(cast(str, instruction.values[0])), values)
            self.line(hook.python())
        elif mnemonic != "discard.refs":
            self.assign(operands.writes[0], self._reference(instruction, operands.reads))
        if operands.moves:
            written = {number for kind, number in operands.writes if kind == "r"}
            self.null(number for number in operands.moves if number not in written)

    # -- expressions ---------------------------------------------------------------------------------

    def _result(
        self, index: int, mnemonic: str, formula: Formula, reads: tuple[Variable, ...], result: Variable
    ) -> None:
        if self.raw:
            self._raw_result(formula, reads, result)
            return
        uses = self.uses.get(index, _FAR)
        name = f"{result[0]}{result[1]}"
        if not uses and formula.pure and result[0] != "r":
            self.before_write(name)
            return
        value = self._logical(mnemonic, reads)
        # Divisions by known nonzero divisors are written as operators, which cannot fail.
        pure = formula.pure
        if value is None:
            value = self._computed(mnemonic, formula, reads, result[0])
            pure = pure or (mnemonic[:4] in ("div.", "rem.") and not isinstance(value.tree, Call))
        if uses == 1 and pure and value.depth < _MAX_DEPTH and not formula.single and result[0] != "r":
            self.defer(name, value)
            return
        self.before_write(name)
        if formula.single:
            self.single = True
            self.line(f"single[0] = {value.tree.python()}")
            self.line(f"{name} = single[0]")
        else:
            self.put(name, value)

    def _raw_result(self, formula: Formula, reads: tuple[Variable, ...], result: Variable) -> None:
        tree = formula.build(*map(self.operand, reads))
        if isinstance(tree, CONDITIONS):
            tree = Conditional(tree, ONE, ZERO)
        elif formula.single:
            tree = call("round_f32", tree)
        self.assign(result, tree)

    def _computed(self, mnemonic: str, formula: Formula, reads: tuple[Variable, ...], kind: str) -> PendingValue:
        """Returns an operation's result."""
        tolerant = _TOLERANT.get(mnemonic, 0)
        if mnemonic.startswith("select."):
            operands = [self.read(reads[0], condition=True), self.read(reads[1]), self.read(reads[2])]
        else:
            operands = [self.read(variable, atomic=formula.atomic, tolerant=tolerant) for variable in reads]
        trees = [operand.tree for operand in operands]
        names, depth = operands[0].reads, operands[0].depth
        for operand in operands[1:]:
            names |= operand.reads
            depth = max(depth, operand.depth)
        if kind in "fF":
            tree = formula.build(*trees)
            return PendingValue(tree, names, depth if tree is trees[0] else depth + 1)
        bounds = [operand.bounds for operand in operands if operand.bounds is not None]
        wrap = formula.wrap
        if mnemonic in _BITWISE and any(operand.wrap for operand in operands):
            wrap = tolerant
        build: Builder | None = None
        exact: Range | None = None
        if bounds:
            build = _simpler(mnemonic, operands)
            exact = result_range(mnemonic, bounds)
        tree = (build or formula.build)(*trees)
        if exact is None:
            exact = _UNBOUNDED if wrap else FULL.get(kind)
        if wrap and exact is not None and fits(exact, wrap):
            wrap = 0
        far = bool(wrap) and (
            exact == _UNBOUNDED
            or any(operand.far for operand in operands)
            or (mnemonic[:4] in ("mul.", "fma.") and any(map(_is_large, trees[:2])))
        )
        return PendingValue(tree, names, depth if tree is trees[0] else depth + 1, exact, wrap, far)

    def _logical(self, mnemonic: str, reads: tuple[Variable, ...]) -> PendingValue | None:
        """Builds a bitwise operation on truth values as ``and``, ``or`` or ``not``; returns ``None`` for others."""
        if mnemonic not in _LOGICAL:
            return None
        pending = [self.pending.get(f"i{number}") for _, number in reads]
        truths = [value is not None and isinstance(value.tree, CONDITIONS) for value in pending]
        if mnemonic == "cmp.nz.i32":
            return self.condition(reads[0]) if truths[0] else None
        if mnemonic == "xor.i32":
            for this, other in ((0, 1), (1, 0)):
                if truths[this] and self._constant_at(reads[other]) == ONE:
                    value = self.condition(reads[this])
                    return PendingValue(negated(value.tree), value.reads, value.depth + 1)
            return None
        if not all(truths):
            return None
        first, second = map(self.condition, reads)
        tree = Logical("and" if mnemonic == "and.i32" else "or", first.tree, second.tree)
        return PendingValue(tree, first.reads | second.reads, max(first.depth, second.depth) + 1)

    def _constant_at(self, variable: Variable) -> Expression | None:
        return self.constants.get(variable) or self.local_constants.get(f"{variable[0]}{variable[1]}")

    # -- constants, globals, references --------------------------------------------------------------

    def _constant(self, instruction: Instruction, variable: Variable) -> None:
        constant = constant_of(instruction)
        if self.raw:
            self.assign(variable, constant)
        elif variable not in self.constants:
            name = f"{variable[0]}{variable[1]}"
            self.before_write(name)
            self.local_constants[name] = constant

    def _global(self, instruction: Instruction, operands: Operands) -> None:
        parts = instruction.operation.mnemonic.split(".")
        kind, is_indirect, is_load = parts[-1], "indirect" in parts, parts[1] == "load"
        if kind == "ref":
            self._global_ref(instruction, operands, is_indirect=is_indirect, is_load=is_load)
            return
        size = 8 if kind in ("i64", "f64") else 4
        memory = self.bound(f"g_{kind}")
        index: Expression = Literal(cast(int, instruction.values[0]) // size)
        if is_indirect:
            index = call("global_index", self.operand(operands.reads[0]), Literal(size), memory)
        element = Item(memory, index)
        if is_load:
            self.assign(operands.writes[0], element)
        else:
            self.line(f"{element.python()} = {self.operand(operands.reads[-1]).python()}")

    def _global_ref(self, instruction: Instruction, operands: Operands, *, is_indirect: bool, is_load: bool) -> None:
        refs, type_ = self.bound("g_ref"), self._type(instruction)
        ordinal = cast("int | None", field_value(instruction, FieldKind.GLOBAL))
        index: Expression = Literal(ordinal)
        if is_indirect:
            index = call("global_ref_index", self.operand(operands.reads[0]), refs)
        if not is_load:
            stored = call("checked_ref", self.operand(operands.reads[-1]), type_)
            self.line(f"{Item(refs, index).python()} = {stored.python()}")
            return
        if is_indirect:
            self.line(f"t = {index.python()}")
            index = Name("t")
        element: Expression = Item(refs, index)
        is_checked = is_indirect or ordinal not in self.analysis.module.typed_globals
        self.assign(operands.writes[0], call("checked_ref", element, type_) if is_checked else element)
        if _result_moves(instruction):
            self.line(f"{element.python()} = None")

    def _type(self, instruction: Instruction) -> Name:
        return self.bound(f"ty{field_value(instruction, FieldKind.TYPE)}")

    def _reference(self, instruction: Instruction, reads: Sequence[Variable]) -> Expression:
        """Builds a result that is a reference or needs the module's tables."""
        value = instruction.values[0]
        match instruction.operation.mnemonic:
            case "const.ref.zero":
                return NONE
            case "const.ref.rodata":
                return self.bound(f"ro{value}")
            case "import.resolved":
                return self.bound(f"is{cast(int, value) & ~IMPORT_BIT}")
            case "assign.ref":
                return self.operand(reads[0])
            case "cast.any.ref":
                return call("checked_ref", self.operand(reads[0]), self._type(instruction))
            case "select.ref":
                test = self.read(reads[0], condition=True).tree
                yes, no = map(self.operand, reads[1:])
                return call("checked_ref", Conditional(test, yes, no), self._type(instruction))
            case "list.alloc":
                return call("new_list", self.bound(f"tn{value}"), self.operand(reads[0]))
            case "list.get.ref":
                source, index = map(self.operand, reads)
                move = (Keyword("move", Name("True")),) if _result_moves(instruction) else ()
                return method(source, "get_ref", index, self._type(instruction), *move)
            case mnemonic if mnemonic.startswith("switch."):
                index, default, *values = map(self.operand, reads)
                chosen = call("switch", index, default, Display(tuple(values)))
                return chosen if mnemonic != "switch.ref" else call("checked_ref", chosen, self._type(instruction))
            case mnemonic:
                raise AssertionError(f"no translation for {mnemonic}")


def _result_moves(instruction: Instruction) -> bool:
    """Whether an instruction's last field, a written reference, moves its source."""
    return bool(cast(int, instruction.values[-1]) & MOVE_BIT) and instruction.operation.fields[-1].move is Move.ALLOW


def _is_large(tree: Expression) -> bool:
    """Whether an operand is a constant whose products are mostly out of range."""
    return isinstance(tree, Literal) and isinstance(tree.value, int) and abs(tree.value) >= _FAR


# -- simpler forms -----------------------------------------------------------------------------------


def _simpler(mnemonic: str, operands: Sequence[PendingValue]) -> Builder | None:
    """Returns a simpler form of an operation with these bounds of its operands; ``None`` if there is none."""
    if mnemonic not in _SIMPLER:
        return None
    name, _, kind = mnemonic.partition(".")
    bounds = [operand.bounds or (-1, 0) for operand in operands]
    bits = int(kind[1:3]) if kind[1:3].isdigit() else 0
    positive = min(bounds)[0] >= 0
    if name == "cmp":
        return compared("<") if positive and mnemonic.endswith(".u") else None
    if name in ("shl", "shr"):
        if bounds[1][0] < 0 or bounds[1][1] >= bits:
            return None
        if name == "shl":
            return binary("<<")
        is_plain = mnemonic.endswith(".s") or bounds[0][0] >= 0
        unsigned = masked((1 << bits) - 1)
        return binary(">>") if is_plain else lambda a, b: Binary(">>", unsigned(a), b)
    if name in ("div", "rem") and bounds[1][0] > 0:
        operator = "//" if name == "div" else "%"
        if bounds[0][0] >= 0:
            return binary(operator)
        if is_atom(operands[0].tree) and mnemonic.endswith(".s"):
            return partial(_truncated, operator)
    if name in ("min", "max") and mnemonic.endswith(".u") and positive:
        return lesser if name == "min" else greater
    if name == "abs" and positive:
        return same
    if mnemonic in _UNSIGNED:
        return same if positive and bounds[0][1] < _UNSIGNED[mnemonic] else None
    return None


_SIMPLER: Final = frozenset(
    mnemonic
    for mnemonic in OPERATIONS
    if mnemonic.startswith(("cmp.lt.i", "shl.", "shr.", "div.i", "rem.i", "min.i", "max.i", "abs.i", "ext.", "trunc."))
)
# Conversions that keep values from 0 to a bound.
_UNSIGNED: Final = {
    "ext.i32.i64.u": 1 << 32,
    "trunc.i32.i8": 1 << 8,
    "trunc.i32.i16": 1 << 16,
    "ext.i8.i32.u": 1 << 8,
    "ext.i16.i32.u": 1 << 16,
}


def _truncated(operator: str, a: Expression, b: Expression) -> Expression:
    """Builds a division or remainder that rounds towards zero, for a positive divisor."""
    towards_zero = Unary("-", Binary(operator, Unary("-", a), b))
    return Conditional(Comparison(">=", a, ZERO), Binary(operator, a, b), towards_zero)
