"""Registers as Python locals: reads, deferred values, their merging into expressions, and stores.

A *name* is a variable's Python local: ``i3`` slot 3 as i32, ``I4`` slots 4 and 5 as i64, ``f…`` and ``F…`` floats,
``r0`` a reference; in functions that mix register types, ``s3`` is the unsigned bits of slot 3.

A value that is used once is not stored: it is *pending*, and its expression becomes part of its use. The names that a
pending value reads do not change before its use: a write to a name first stores the pending values that read it. So the
order of pending values does not matter.

Integers are wrapped after a comparison that small values pass quickly, and only where their bounds do not show that
they are in range. Wrapping is deferred along chains of operations that agree modulo 2**n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from ...base.lazy_dataclass import dataclass
from .analysis import FunctionAnalysis
from .basic_block import Block, Variable
from .expressions import (
    CONDITIONS,
    ONE,
    ZERO,
    Binary,
    Comparison,
    Conditional,
    Expression,
    Literal,
    Logical,
    Name,
    Not,
    SourceWriter,
    call,
    wrapped,
)
from .ranges import FULL, Range, fits, refined

_MANY: Final = 1 << 20
# CPython compares ints of one digit (30 bits) fastest; larger ints use the exact form.
_NEAR: Final = 0x3FFFFFFF
_OPPOSITES: Final = {"<": ">=", ">=": "<", "==": "!=", "!=": "=="}
_NOTHING: Final[frozenset[str]] = frozenset()
_LOW_32: Final = (1 << 32) - 1


@dataclass(slots=True, eq=False)
class PendingValue:
    """A value that has not been stored: its expression, and its known properties."""

    tree: Expression
    reads: frozenset[str] = _NOTHING  # the names that it reads
    depth: int = 0  # the number of nested operations
    bounds: Range | None = None  # the bounds of the integer before it is wrapped; ``None`` for other types
    wrap: int = 0  # 32 or 64 if it has to be wrapped to that width, otherwise 0
    far: bool = False  # whether it is mostly out of range, so that a test first is not worthwhile

    def as_number(self) -> PendingValue:
        """Converts a truth value to a number; returns itself."""
        if isinstance(self.tree, CONDITIONS):
            self.tree, self.bounds = Conditional(self.tree, ONE, ZERO), (0, 1)
        return self

    def wrap_inline(self) -> None:
        """Wraps it within its expression."""
        self.tree = wrapped(self.tree, self.wrap)
        self.bounds = FULL["i" if self.wrap == 32 else "I"]
        self.depth += 1
        self.wrap, self.far = 0, False


class ValueWriter(SourceWriter):
    """Writes reads and writes of variables."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        super().__init__()
        self.analysis = analysis
        self.raw: bool = analysis.register_types is None  # whether register types mix, so that slots are kept as bits
        self.constants: dict[Variable, Expression] = analysis.constants
        self.read_names: set[str] = set()  # all names that the source reads
        self._variables: dict[str, tuple[Name, frozenset[str]]] = {}  # by name: its expression, and the names read
        self.pending: dict[str, PendingValue] = {}  # values that are not stored yet, by name
        self._readers: defaultdict[str, set[str]] = defaultdict(
            set
        )  # by name the pending values that read it; some may already be stored
        self.local_constants: dict[str, Expression] = {}
        self.bounds: dict[str, Range] = {}
        self._writes = 0
        self._written: dict[str, int] = {}  # by name the number of its last write, in source order
        self.uses: dict[int, int] = {}  # the number of uses of each instruction's results
        self.state: Mapping[int, str] = {}  # types of the slots at the end of the current block

    # -- reading -------------------------------------------------------------------------------------

    def read(
        self, variable: Variable, *, atomic: bool = False, tolerant: int = 0, condition: bool = False
    ) -> PendingValue:
        """Returns a variable's value as an operand.

        Args:
            atomic: whether it must be a name or a literal, as it occurs twice.
            tolerant: the bit width of an operation that works modulo 2**bits, so that its operands need not be wrapped.
            condition: whether a truth value may be returned.
        """
        kind, number = variable
        if self.raw and kind != "r":
            return self._read_raw(variable)
        name = f"{kind}{number}"
        constant = self.constants.get(variable) or self.local_constants.get(name)
        if constant is not None:
            return PendingValue(constant, _NOTHING, 0, _constant_bounds(constant))
        value = self.pending.get(name)
        if value is not None:
            must_wrap = value.wrap and not self._tolerated(value, tolerant)
            if atomic or (must_wrap and not value.far):
                self.store(name)
            else:
                self._forget(name)
                if must_wrap:
                    value.wrap_inline()
                return value if condition else value.as_number()
        self.read_names.add(name)
        variables = self._variables
        if name not in variables:
            variables[name] = Name(name), frozenset((name,))
        return PendingValue(*variables[name], 0, self.bounds.get(name, FULL.get(kind)))

    def _tolerated(self, value: PendingValue, tolerant: int) -> bool:
        # Numbers must not grow without bound along a chain of multiplications.
        return value.wrap == tolerant and value.bounds is not None and fits(value.bounds, 2 * tolerant)

    def operand(self, variable: Variable) -> Expression:
        """Returns the expression of a variable's value."""
        return self.read(variable).tree

    def condition(self, variable: Variable) -> PendingValue:
        """Returns a variable's value as the condition of an ``if``."""
        name = f"{variable[0]}{variable[1]}"
        value = self.pending.get(name)
        if value is not None and not value.wrap:
            self._forget(name)
            return value
        return self.read(variable)

    def _read_raw(self, variable: Variable) -> PendingValue:
        kind, number = variable
        reads = [f"s{number}", f"s{number + 1}"] if kind in "IF" else [f"s{number}"]
        self.read_names.update(reads)
        low = Name(reads[0])
        if kind in "if":
            tree = call("wrap32", low)
        else:
            tree = call("wrap64", Binary("|", low, Binary("<<", Name(reads[1]), Literal(32))))
        if kind in "fF":
            tree = call("bitcast_i32_f32" if kind == "f" else "bitcast_i64_f64", tree)
        return PendingValue(tree, frozenset(reads), 1, FULL.get(kind))

    # -- pending values ------------------------------------------------------------------------------

    def defer(self, name: str, value: PendingValue) -> None:
        """Defers a value until it is used."""
        self.before_write(name)
        self.pending[name] = value
        for read in value.reads:
            self._readers[read].add(name)

    def _forget(self, name: str) -> None:
        value = self.pending.pop(name, None)
        if value is not None:
            for read in value.reads:
                self._readers[read].discard(name)

    def store(self, name: str) -> None:
        """Stores a pending value."""
        value = self.pending[name]
        self._forget(name)
        self.put(name, value)

    def flush(self) -> None:
        """Stores every pending value."""
        for name in list(self.pending):
            self.store(name)

    def before_write(self, name: str) -> None:
        """Stores the pending values that read a name, before it changes."""
        self._note_write(name)
        self.local_constants.pop(name, None)
        self.bounds.pop(name, None)
        self._forget(name)
        readers = self._readers.get(name)
        if readers:
            for other in sorted(readers):
                self.store(other)

    def _note_write(self, name: str) -> None:
        self._writes += 1
        self._written[name] = self._writes

    # -- writing -------------------------------------------------------------------------------------

    def put(self, name: str, value: PendingValue) -> None:
        """Writes an assignment with the wrapping that it needs."""
        wrap, bounds = value.wrap, value.bounds
        self._note_write(name)
        if not wrap:
            self.line(f"{name} = {value.as_number().tree.python()}")
            if bounds is not None and bounds != FULL[name[0]]:
                self.bounds[name] = bounds
            else:
                self.bounds.pop(name, None)
            return
        self.bounds.pop(name, None)
        if value.far:
            half = 1 << (wrap - 1)
            self.line(f"{name} = {Binary('&', value.tree, Literal(2 * half - 1)).python()}")
            with self.suite(f"if {name} >= {half}:"):
                self.line(f"{name} -= {2 * half}")
            return
        assert bounds is not None
        self.line(f"{name} = {value.tree.python()}")
        low, high = FULL[name[0]]
        variable = Name(name)
        test = _outside(variable, -_NEAR if bounds[0] < low else None, _NEAR if bounds[1] > high else None)
        if wrap == 64 and fits(bounds, 66):
            # Even large sums are rarely out of range: test before the costly form.
            test = Logical("and", test, _outside(variable, low, high))
        with self.suite(f"if {test.python()}:"):
            self.line(f"{name} = {wrapped(variable, wrap).python()}")

    def assign(self, variable: Variable, tree: Expression) -> None:
        """Stores a value that is in its type's range in a variable."""
        kind, number = variable
        if self.raw and kind != "r":
            self.write_raw(variable, tree)
            return
        name = f"{kind}{number}"
        self.before_write(name)
        self.line(f"{name} = {tree.python()}")

    def write_raw(self, variable: Variable, tree: Expression) -> None:
        """Stores the bits of a value in its slots; an integer need not be in range."""
        kind, number = variable
        if kind in "fF":
            tree = call("bitcast_f32_i32" if kind == "f" else "bitcast_f64_i64", tree)
        if kind in "if":
            self.line(f"s{number} = {Binary('&', tree, Literal(_LOW_32)).python()}")
        else:
            self.line(f"t = {tree.python()}")
            self.line(f"s{number} = t & {_LOW_32}")
            self.line(f"s{number + 1} = t >> 32 & {_LOW_32}")

    def null(self, references: Iterable[int]) -> None:
        """Sets reference registers to null."""
        names = [f"r{number}" for number in dict.fromkeys(references)]
        for name in names:
            self.before_write(name)
        if names:
            self.line(f"{' = '.join(names)} = None")

    # -- bounds --------------------------------------------------------------------------------------

    def known(self) -> tuple[dict[str, Range], int]:
        """Returns the bounds known here, for ``recall`` at a later position."""
        return dict(self.bounds), self._writes

    def recall(self, known: tuple[dict[str, Range], int]) -> None:
        """Restores the bounds known at an earlier position, for names that were not written since."""
        bounds, writes = known
        self.bounds = {name: bound for name, bound in bounds.items() if self._written.get(name, 0) <= writes}

    def learn(self, test: Expression, *, holds: bool) -> None:
        """Narrows the bounds of names by a condition, or by its negation."""
        while isinstance(test, Not):
            test, holds = test.operand, not holds
        if isinstance(test, Name):
            test = Comparison("!=", test, ZERO)
        if not isinstance(test, Comparison) or test.operator not in _OPPOSITES:
            return
        sides = [self._bounds_of(side) for side in (test.left, test.right)]
        if sides[0] is None or sides[1] is None:
            return
        operator = test.operator if holds else _OPPOSITES[test.operator]
        for side, bounds in zip((test.left, test.right), refined(operator, sides[0], sides[1]), strict=True):
            if isinstance(side, Name) and bounds != FULL[side.name[0]]:
                self.bounds[side.name] = bounds

    def _bounds_of(self, tree: Expression) -> Range | None:
        """Returns the bounds of an integer that is a name or a constant."""
        if isinstance(tree, Name):
            return self.bounds.get(tree.name, FULL.get(tree.name[0]))
        return _constant_bounds(tree)

    # -- blocks --------------------------------------------------------------------------------------

    def begin(self, block: Block, start: int, end: int) -> None:
        """Begins a block whose instructions from ``start`` to ``end`` are written."""
        self.pending, self._readers, self.local_constants = {}, defaultdict(set), {}
        if not self.raw:
            self._count_uses(block, start, end)

    def _count_uses(self, block: Block, start: int, end: int) -> None:
        """Counts for each instruction the uses of its results before their next write; many if live at the end."""
        self.uses = {}
        counts: dict[int, int] = {}

        def many(live: int) -> None:
            live &= (1 << self.analysis.ref_shift) - 1
            while live:
                bit = live & -live
                live ^= bit
                counts[bit.bit_length() - 1] = _MANY

        if end < block.end:
            many(self.analysis.live_after(block)[end - 1 - block.start])
        else:
            for edge in block.edges:
                live = self.analysis.blocks[edge.target].live_in
                kept = live
                for target, source in edge.values.items():
                    kept &= ~(1 << target)
                    if live >> target & 1:
                        counts[source] = counts.get(source, 0) + 1
                many(kept)
        operands_of = self.analysis.operands
        for index in range(end - 1, start - 1, -1):
            operands = operands_of[index]
            for kind, number in operands.writes:
                if kind != "r":
                    slots = (number, number + 1) if kind in "IF" else (number,)
                    self.uses[index] = max(counts.get(slot, 0) for slot in slots)
                    for slot in slots:
                        counts[slot] = 0
            for kind, number in operands.reads:
                if kind != "r":
                    for slot in (number, number + 1) if kind in "IF" else (number,):
                        counts[slot] = counts.get(slot, 0) + 1

    def settle(self, block: Block, keep: Iterable[str] = ()) -> None:
        """Stores pending values except ``keep``, and live constants, at the end of a block."""
        kept = frozenset(keep)
        for name in list(self.pending):
            if name not in kept:
                self.store(name)
        for name, constant in list(self.local_constants.items()):
            kind, number = name[0], int(name[1:])
            if block.live_out >> number & 1 and self.state.get(number) == kind:
                self.line(f"{name} = {constant.python()}")
                self._note_write(name)
                bounds = _constant_bounds(constant)
                if bounds is not None:
                    self.bounds[name] = bounds


def _outside(variable: Name, low: int | None, high: int | None) -> Expression:
    """Builds a test whether a variable is out of bounds; one bound may be missing."""
    below, above = Comparison("<", variable, Literal(low)), Comparison(">", variable, Literal(high))
    return above if low is None else below if high is None else Logical("or", above, below)


def _constant_bounds(tree: Expression) -> Range | None:
    value = tree.value if isinstance(tree, Literal) else None
    return (value, value) if isinstance(value, int) else None
