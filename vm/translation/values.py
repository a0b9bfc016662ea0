"""Registers as Python locals: how values are read, deferred, merged into the text of their use, wrapped and stored.

A *name* is a variable's Python local: ``i3`` slot 3 as i32, ``I4`` slots 4 and 5 as i64, ``f…`` and ``F…`` floats,
``r0`` a reference; in functions that mix register types ``s3`` the unsigned bits of slot 3.

A value that is used once is not stored: it is *pending*, and its text goes into that of its use. A pending text reads
only names that do not change before its use: a write to a name first stores the pending texts that read it. So the
order of pending texts does not matter.

Integers are wrapped behind a comparison that small values pass quickly, and only where their bounds do not show that
they are in range. Wrapping is deferred along chains of operations that agree modulo 2**n.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from .analysis import FunctionAnalysis
from .basic_block import Block, Variable
from .ranges import FULL, Range, fits, refined
from .source import SourceWriter

_MANY: Final = 1 << 20
# CPython compares ints of one digit (30 bits) fastest; larger ones take the exact form.
_NEAR: Final = 0x3FFFFFFF
_WRAPPED: Final = {
    32: "({0} + 2147483648 & 4294967295) - 2147483648",
    64: "({0} + 9223372036854775808 & 18446744073709551615) - 9223372036854775808",
}

# A comparison, its operands as names or ints, and their register type.
Fact: TypeAlias = tuple[str, str | int, str | int, str]
OPPOSITE: Final = {"lt": "ge", "ge": "lt", "eq": "ne", "ne": "eq"}


@dataclass(slots=True, eq=False)
class Text:
    """The text of a value: a Python expression."""

    text: str
    reads: frozenset[str] = frozenset()  # names
    depth: int = 0  # of nested operations
    bounds: Range | None = None  # of the integer, before it is wrapped; ``None`` for other types
    atom: bool = False  # whether it needs no parentheses as an operand
    wrap: int = 0  # 32 or 64 if it has to be wrapped into that many bits, 0 otherwise
    far: bool = False  # whether it will mostly be out of range, so that testing first does not pay
    condition: bool = False  # whether it is a Python truth value, which becomes 1 or 0 where a number is wanted
    fact: Fact | None = None  # about integers, that a condition states, if it is simple

    def as_operand(self) -> Text:
        """Puts it in parentheses unless it is an atom; returns itself."""
        if not self.atom:
            self.text = f"({self.text})"
            self.atom = True
            self.depth += 1
        return self

    def as_number(self) -> Text:
        """Makes a truth value a number; returns itself."""
        if self.condition:
            self.text = f"1 if {self.text} else 0"
            self.atom = self.condition = False
            self.fact, self.bounds = None, (0, 1)
        return self

    def wrapped(self) -> Text:
        """Wraps it within its own text; returns itself."""
        if self.wrap:
            self.text = _WRAPPED[self.wrap].format(self.as_operand().text)
            self.bounds = FULL["i" if self.wrap == 32 else "I"]
            self.depth += 1
            self.wrap = 0
            self.atom = self.far = False
        return self


class ValueWriter(SourceWriter):
    """Writes reads and writes of variables."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        super().__init__()
        self.analysis = analysis
        self.raw = analysis.register_types is None  # whether the function mixes register types: slots kept as bits
        self.constants = analysis.constants
        self.read_names: set[str] = set()  # all that the source reads
        self.pending: dict[str, Text] = {}  # values that are not stored yet, by name
        self._readers: dict[str, set[str]] = {}  # by name the pending values that read it; some may be stored by now
        self.local_constants: dict[str, str] = {}
        self.bounds: dict[str, Range] = {}
        self._writes = 0
        self._written: dict[str, int] = {}  # by name the number of its last write, in the order of the source
        self.uses: dict[int, int] = {}  # of each instruction's results
        self.state: dict[int, str] = {}  # types of the slots at the instruction that is being written

    # -- reading -------------------------------------------------------------------------------------

    def read(self, variable: Variable, *, atomic: bool = False, tolerant: int = 0, condition: bool = False) -> Text:
        """A variable's value as an operand.

        Args:
            atomic: whether it must be a name or a literal, as its text will occur twice.
            tolerant: bits of an operation that agrees modulo 2**bits, and so takes values that are not wrapped yet.
            condition: whether a truth value may be returned.
        """
        kind, number = variable
        if self.raw and kind != "r":
            return self._read_raw(variable)
        constant = self.constants.get(variable)
        name = f"{kind}{number}"
        if constant is None:
            constant = self.local_constants.get(name)
        if constant is not None:
            literal = int(constant.strip("()")) if kind in FULL else 0
            return Text(constant, bounds=(literal, literal) if kind in FULL else None, atom=True)
        text = self.pending.get(name)
        if text is not None:
            if atomic or (text.wrap and not text.far and not self._tolerated(text, tolerant)):
                self.store(name)
            else:
                self._forget(name)
                if text.wrap and not self._tolerated(text, tolerant):
                    text.wrapped()
                if text.condition and not condition:
                    text.as_number()
                return text.as_operand()
        self.read_names.add(name)
        return Text(name, frozenset((name,)), bounds=self.bounds.get(name, FULL.get(kind)), atom=True)

    def _tolerated(self, text: Text, tolerant: int) -> bool:
        # Numbers must not grow without bound along a chain of multiplications.
        return text.wrap == tolerant and text.bounds is not None and fits(text.bounds, 2 * tolerant)

    def value(self, variable: Variable) -> str:
        """A variable's value as an operand's text."""
        return self.read(variable).text

    def condition(self, variable: Variable) -> Text:
        """A variable's value as the condition of an ``if``; elsewhere it needs parentheses."""
        name = f"{variable[0]}{variable[1]}"
        text = self.pending.get(name)
        if text is not None and not text.wrap:
            self._forget(name)
            return text
        return self.read(variable)

    def _read_raw(self, variable: Variable) -> Text:
        kind, number = variable
        low, high = f"s{number}", f"s{number + 1}"
        self.read_names.add(low)
        if kind in "IF":
            self.read_names.add(high)
        text = {
            "i": f"wrap32({low})",
            "f": f"bitcast_i32_f32(wrap32({low}))",
            "I": f"wrap64({low} | {high} << 32)",
            "F": f"bitcast_i64_f64(wrap64({low} | {high} << 32))",
        }[kind]
        return Text(text, frozenset((low, high)), 1, FULL.get(kind), atom=True)

    # -- pending values ------------------------------------------------------------------------------

    def defer(self, name: str, text: Text) -> None:
        """Defers a value until it is used."""
        self.before_write(name)
        self.pending[name] = text
        for one in text.reads:
            self._readers.setdefault(one, set()).add(name)

    def _forget(self, name: str) -> None:
        text = self.pending.pop(name, None)
        if text is not None:
            for one in text.reads:
                self._readers[one].discard(name)

    def store(self, name: str) -> None:
        """Stores a pending value."""
        text = self.pending[name]
        self._forget(name)
        self.put(name, text)

    def flush(self) -> None:
        """Stores every pending value."""
        for name in list(self.pending):
            self.store(name)

    def before_write(self, name: str) -> None:
        """Before a name changes: stores the pending values that read it."""
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

    def put(self, name: str, text: Text) -> None:
        """Writes an assignment with the wrapping that it needs."""
        wrap, bounds = text.wrap, text.bounds
        self._note_write(name)
        if not wrap:
            self.line(f"{name} = {text.as_number().text}")
            if bounds is not None and bounds != FULL[name[0]]:
                self.bounds[name] = bounds
            else:
                self.bounds.pop(name, None)
            return
        self.bounds.pop(name, None)
        if text.far:
            half = 1 << (wrap - 1)
            self.line(f"{name} = {text.as_operand().text} & {2 * half - 1}")
            with self.suite(f"if {name} >= {half}:"):
                self.line(f"{name} -= {2 * half}")
            return
        assert bounds is not None
        self.line(f"{name} = {text.text}")
        low, high = FULL[name[0]]
        tests = [f"{name} > {_NEAR}"] if bounds[1] > high else []
        if bounds[0] < low:
            tests.append(f"{name} < -{_NEAR}")
        test = " or ".join(tests)
        if wrap == 64 and fits(bounds, 66):
            # Even large sums are rarely out of range: test that before the costly form.
            test = f"({test})" if len(tests) > 1 else test
            test += f" and not -9223372036854775808 <= {name} <= 9223372036854775807"
        with self.suite(f"if {test}:"):
            self.line(f"{name} = {_WRAPPED[wrap].format(name)}")

    def assign(self, variable: Variable, text: str) -> None:
        """Stores a value that is in its type's range in a variable."""
        kind, number = variable
        if self.raw and kind != "r":
            self.write_raw(variable, text)
            return
        name = f"{kind}{number}"
        self.before_write(name)
        self.line(f"{name} = {text}")

    def write_raw(self, variable: Variable, text: str) -> None:
        """Stores a value's bits in its slots; an integer need not be in range."""
        kind, number = variable
        if kind == "i":
            self.line(f"s{number} = ({text}) & 4294967295")
        elif kind == "f":
            self.line(f"s{number} = bitcast_f32_i32({text}) & 4294967295")
        else:
            self.line(f"t = {text if kind == 'I' else f'bitcast_f64_i64({text})'}")
            self.line(f"s{number} = t & 4294967295")
            self.line(f"s{number + 1} = t >> 32 & 4294967295")

    def null(self, references: Iterable[int]) -> None:
        """Sets reference registers to null."""
        names = [f"r{number}" for number in dict.fromkeys(references)]
        for name in names:
            self.before_write(name)
        if names:
            self.line(f"{' = '.join(names)} = None")

    # -- bounds --------------------------------------------------------------------------------------

    def known(self) -> tuple[dict[str, Range], int]:
        """The bounds known here, for ``recall`` where control comes from here."""
        return dict(self.bounds), self._writes

    def recall(self, known: tuple[dict[str, Range], int]) -> None:
        """Restores bounds known at an earlier place, for names that were not written since."""
        bounds, writes = known
        self.bounds = {name: one for name, one in bounds.items() if self._written.get(name, 0) <= writes}

    def learn(self, fact: Fact | None, *, holds: bool) -> None:
        """Narrows bounds by a condition that holds, or does not."""
        if fact is None:
            return
        comparison, left, right, kind = fact
        sides = [(one, one) if isinstance(one, int) else self.bounds.get(one, FULL[kind]) for one in (left, right)]
        found = refined(comparison if holds else OPPOSITE[comparison], sides[0], sides[1])
        for one, bounds in zip((left, right), found, strict=True):
            if isinstance(one, str) and bounds != FULL[kind]:
                self.bounds[one] = bounds

    # -- blocks --------------------------------------------------------------------------------------

    def begin(self, block: Block, start: int, end: int) -> None:
        """Begins a block, of which the instructions from ``start`` up to ``end`` are written."""
        self.pending, self._readers, self.local_constants = {}, {}, {}
        if not self.raw:
            self.state = self.analysis.types_before(block, start)
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
        """Before control leaves a block: stores pending values except ``keep``, and constants live behind it."""
        kept = frozenset(keep)
        for name in list(self.pending):
            if name not in kept:
                self.store(name)
        for name, text in list(self.local_constants.items()):
            kind, number = name[0], int(name[1:])
            if block.live_out >> number & 1 and self.state.get(number) == kind:
                self.line(f"{name} = {text}")
                self._note_write(name)
                if kind in FULL:
                    literal = int(text.strip("()"))
                    self.bounds[name] = (literal, literal)
