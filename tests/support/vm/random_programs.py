"""Random programs in VM assembly that end, do not fail, and give their results as i64 words: for comparing two VMs.

A program is some functions that call each other, ``case_N`` functions that call one with random arguments and fold
its results into one word, and ``main``, which returns the words of all cases. What C or the peer leaves to chance is
avoided: integer division is kept from zero and overflow, NaNs lose sign and payload before their bits are seen,
indices stay inside.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from pumice.vm.assembly.disassembler import assembly_form
from pumice.vm.bytecode.isa import FieldKind, Isa, Operation
from pumice.vm.translation.operations import OPERATIONS

__all__ = ["Shape", "random_program", "without_yields"]

_ISA = Isa.for_version(17 << 16)
_WORDS32 = (
    0, 1, -1, 2, 3, 7, 31, 32, 33, 255, 1 << 15, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, -(1 << 30), -(1 << 30) - 1,
    (1 << 31) - 1, -(1 << 31), -(1 << 31) + 1,
)  # fmt: skip
_WORDS64 = (*_WORDS32, 1 << 31, 1 << 32, (1 << 62) + 5, (1 << 63) - 1, -(1 << 63), -(1 << 60) - 1, 1 << 60)
_FLOATS32 = (
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x7F7FFFFF,
    0x4B000001, 0x3EAAAAAB, 0x4F000000, 0xCF000000, 0x5F000000,
)  # fmt: skip
_FLOATS64 = (
    0, 1 << 63, 0x3FF0000000000000, 0xBFE5555555555555, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
    1, 0x7FEFFFFFFFFFFFFF, 0x41E0000000000000, 0x43E0000000000000, 0x4330000000000001,
)  # fmt: skip
_TYPES = {"i": "i32", "I": "i64", "f": "f32", "F": "f64", "r": "!vm.buffer"}
_BANKS = {"i32": "i", "i64": "I", "f32": "f", "f64": "F"}
# What the two VMs need not agree on to the last bit, or what fails, is left out or written with a guard.
_INEXACT = [
    "atan", "cos", "sin", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "rsqrt", "tanh", "erf", "atan2",
    "pow", "rem", "buffer", "list",
]  # fmt: skip
_SIMPLE: tuple[Operation, ...] = tuple(
    _ISA.operations[name]
    for name in OPERATIONS
    if not any(f"{name}.".startswith(f"{one}.") for one in (*_INEXACT, "div", "fma.f32", "fma.f64"))
    and ".ref" not in name
    and name in _ISA.operations
)


@dataclass(frozen=True)
class Shape:
    """The limits of a random program."""

    slots: str = "typed"
    graph: str = "structured"
    size: int = 8
    yields: bool = False
    functions: int = 6


def random_program(seed: int, shape: Shape, *, name: str = "random") -> str:
    """The text of a program."""
    rng = random.Random(f"{seed} {shape}")
    functions: list[_Function] = []
    for number in range(shape.functions):
        functions.append(_Function(rng, shape, f"fn{number}", functions[-4:]))
    lines = [f"vm.module @{name} version 0"]
    lists = [f"!vm.list<{element}>" for element in ("i32", "i64", "f32", "f64", "?", "!vm.buffer")]
    lines += [f"vm.type {name}" for name in ("i32", "i64", "f32", "f64", "!vm.buffer", *lists)]
    lines += [f"vm.rodata[{index}] = {data}" for index, data in enumerate(("00", "0102", "030405"))]
    cases = []
    for number, function in enumerate(functions):
        for variant in range(2):
            cases.append(f"case_{number}_{variant}")
            lines += _case(rng, function, cases[-1])
    for function in functions:
        lines += function.text()
    lines += ["vm.export @main", f"vm.func @main() -> ({', '.join(['i64'] * len(cases))}) {{", "^bb0:"]
    # Makes room for all globals, whichever the functions name.
    lines += ["  %i0:1 = vm.global.load.i64 .rwdata[64]", "  %r0 = vm.global.load.ref .refs[3] : !vm.buffer"]
    for index, case in enumerate(cases):
        lines.append(f"  %i{2 * index}:{2 * index + 1} = vm.call @{case}()")
    lines.append("  vm.return " + ", ".join(f"%i{2 * index}:{2 * index + 1}" for index in range(len(cases))))
    lines.append("}")
    return "\n".join(lines) + "\n"


def without_yields(text: str) -> str:
    """The same program for a VM that does not return from a yield in a nested call.

    Yields become branches, yieldable calls become calls.
    """
    text = re.sub(r"vm\.yield (?=\^)", "vm.br ", text)
    return re.sub(
        r"^( *)vm\.call\.yieldable (@\w+\([^)]*\)) -> (\^\w+)\(([^)]*)\)$", _plain_call, text, flags=re.MULTILINE
    )


def _plain_call(found: re.Match[str]) -> str:
    indent, call, label, results = found.groups()
    return f"{indent}{results + ' = ' if results else ''}vm.call {call}\n{indent}vm.br {label}()"


def _constant(rng: random.Random, kind: str, to: str, scratch: str) -> list[str]:
    """Lines that set a register to a random constant; ``scratch`` is a pair's name for the bits of a float."""
    if kind == "i":
        word = rng.choice(_WORDS32) if rng.random() < 0.7 else rng.randint(-(1 << 31), (1 << 31) - 1)
        return [f"{to} = vm.const.i32 {word}"] if word or rng.random() < 0.5 else [f"{to} = vm.const.i32.zero"]
    if kind == "I":
        word = rng.choice(_WORDS64) if rng.random() < 0.7 else rng.randint(-(1 << 63), (1 << 63) - 1)
        return [f"{to} = vm.const.i64 {word}"]
    if kind == "f":
        if rng.random() < 0.5:
            return [f"{to} = vm.const.f32 {rng.choice(('1.0', '-2.5', '0.1', '3.0e+8', '-0.0', '16777216.0'))}"]
        low = scratch.partition(":")[0]
        return [f"{low} = vm.const.i32 {_signed(rng.choice(_FLOATS32), 32)}", f"{to} = vm.bitcast.i32.f32 {low}"]
    if kind == "F":
        if rng.random() < 0.5:
            return [
                f"{to} = vm.const.f64 {rng.choice(('1.0', '-2.5', '0.1', '3.0e+100', '-0.0', '9007199254740993.0'))}"
            ]
        return [
            f"{scratch} = vm.const.i64 {_signed(rng.choice(_FLOATS64), 64)}",
            f"{to} = vm.bitcast.i64.f64 {scratch}",
        ]
    return [f"{to} = vm.const.ref.rodata {rng.randrange(3)}" if rng.random() < 0.8 else f"{to} = vm.const.ref.zero"]


def _signed(word: int, bits: int) -> int:
    return word - (1 << bits) if word >> (bits - 1) else word


def _case(rng: random.Random, function: _Function, name: str) -> list[str]:
    lines = [f"vm.export @{name}", f"vm.func @{name}() -> (i64) {{", "^bb0:"]
    slot, ref = 10, 0
    given: list[str] = []
    taken: list[str] = []
    for kinds, names in ((function.arguments, given), (function.results, taken)):
        for kind in kinds:
            if kind == "r":
                names.append(f"%r{ref}")
                ref += 1
            else:
                slot += slot % 2
                names.append(_register(kind, slot))
                slot += 2
    for kind, to in zip(function.arguments, given, strict=True):
        lines += ["  " + one for one in _constant(rng, kind, to, "%i8:9")]
    passed = [one.upper() if one[1] == "r" and rng.random() < 0.5 else one for one in given]
    passed = [one.replace("%I", "%i") for one in passed]
    left = f"{', '.join(taken)} = " if taken else ""
    lines.append(f"  {left}vm.call @{function.name}({', '.join(passed)})")
    lines += ["  %i0:1 = vm.const.i64 1125899906842597", "  %i2:3 = vm.const.i64 6364136223846793005"]
    for kind, source in zip(function.results, taken, strict=True):
        lines += ["  " + one for one in _word(kind, source, "%i4:5", "%i6:7", "%i8:9")]
        lines += ["  %i0:1 = vm.mul.i64 %i0:1, %i2:3", "  %i0:1 = vm.xor.i64 %i0:1, %i4:5"]
    return [*lines, "  vm.return %i0:1", "}"]


def _word(kind: str, source: str, to: str, spare: str, other: str) -> list[str]:
    """Lines that make an i64 of a value; NaNs all become one."""
    low, low_other = spare.partition(":")[0], other.partition(":")[0]
    if kind == "i":
        return [f"{to} = vm.ext.i32.i64.s {source}"]
    if kind == "I":
        return [f"{to} = vm.or.i64 {source}, {source}"]
    if kind == "r":
        return [f"{low} = vm.cmp.nz.ref {source}", f"{to} = vm.ext.i32.i64.s {low}", f"vm.discard.refs {source}"]
    if kind == "f":
        return [
            f"{low} = vm.bitcast.f32.i32 {source}",
            f"{low_other} = vm.cmp.nan.f32 {source}",
            f"{low} = vm.select.i32 {low_other} ? {low_other} : {low}",
            f"{to} = vm.ext.i32.i64.u {low}",
        ]
    return [
        f"{spare} = vm.bitcast.f64.i64 {source}",
        f"{low_other} = vm.cmp.nan.f64 {source}",
        f"{to} = vm.ext.i32.i64.s {low_other}",
        f"{to} = vm.select.i64 {low_other} ? {to} : {spare}",
    ]


def _register(kind: str, slot: int) -> str:
    return f"%i{slot}:{slot + 1}" if kind in "IF" else f"%i{slot}"


@dataclass
class _Loop:
    header: str
    exit: str


@dataclass
class _Block:
    label: str
    lines: list[str] = field(default_factory=list)
    open: bool = True


class _Function:
    # Reserved slots, behind the pool: named so that nothing random writes them.
    def __init__(self, rng: random.Random, shape: Shape, name: str, callees: list[_Function]) -> None:
        self.rng = rng
        self.shape = shape
        self.name = name
        self.callees = callees
        self.arguments = [rng.choice("iiIIfFr") for _ in range(rng.randrange(6))]
        self.results = [rng.choice("iIfFr") for _ in range(rng.randrange(1, 5))]
        self.pool = rng.choice((8, 14, 20, 40))
        slot = ref = 0
        self.argument_text: list[str] = []
        self.fixed: dict[int, str] = {}
        for kind in self.arguments:
            if kind == "r":
                self.argument_text.append(f"%r{ref}: !vm.buffer")
                ref += 1
                continue
            if kind in "IF":
                slot += slot % 2
            self.argument_text.append(f"{_register(kind, slot)}: {_TYPES[kind]}")
            self.fixed[slot] = kind
            slot += 2 if kind in "IF" else 1
        self.refs = max(ref, 4)
        self.first_free = slot
        self._lay_out()
        base = self.pool + self.pool % 2
        (self.fuel, self.one, self.flag, self.seven, self.zero, self.low) = (f"%i{base + n}" for n in range(6))
        self.mask, self.wide, self.wide2, self.fzero = (_register("I", base + n) for n in (6, 8, 10, 12))
        self.tiny = f"%i{base + 14}"
        self.buffer, self.list = f"%r{self.refs}", f"%r{self.refs + 1}"
        self.element = rng.choice("iIfF")
        self.blocks: list[_Block] = []
        self.loops: list[_Loop] = []
        self.calls = 3
        self.label_count = 0
        self.write()

    def _lay_out(self) -> None:
        """Gives slots their kinds."""
        rng = self.rng
        slot = self.first_free
        self.pool = max(self.pool, slot + 8)
        while slot < self.pool:
            kind = rng.choice("iiifIIF")
            if kind in "IF" and (slot % 2 or slot + 1 >= self.pool):
                kind = "i"
            self.fixed[slot] = kind
            slot += 2 if kind in "IF" else 1
        for kind in "ifIF":  # each kind has somewhere to go
            if kind not in self.fixed.values():
                width = 2 if kind in "IF" else 1
                self.pool += self.pool % 2
                self.fixed[self.pool] = kind
                self.pool += width
        self.scratch_start = self.pool + self.pool % 2
        self.scratch: dict[int, str] = {}
        self.written: set[int] = set()
        if self.shape.slots == "reused":
            self.pool = self.scratch_start + 6

    def _reshuffle(self) -> None:
        """New kinds for the scratch slots; nothing of them is written yet."""
        self.scratch, self.written = {}, set()
        slot = self.scratch_start
        while slot < self.scratch_start + 6:
            kind = self.rng.choice("iifIF")
            if kind in "IF" and (slot % 2 or slot + 1 >= self.scratch_start + 6):
                kind = "f"
            self.scratch[slot] = kind
            slot += 2 if kind in "IF" else 1

    # -- output --------------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.blocks[-1].lines.append("  " + text)

    def end(self, text: str) -> None:
        self.emit(text)
        self.blocks[-1].open = False

    def label(self) -> str:
        self.label_count += 1
        return f"^bb{self.label_count}"

    def start(self, label: str) -> None:
        assert not self.blocks or not self.blocks[-1].open
        self.blocks.append(_Block(label))
        if self.shape.slots == "reused":
            self._reshuffle()

    def text(self) -> list[str]:
        results = ", ".join(_TYPES[kind] for kind in self.results)
        lines = [f"vm.func @{self.name}({', '.join(self.argument_text)}) -> ({results}) {{"]
        names = {block.label: f"^bb{index}" for index, block in enumerate(self.blocks)}
        for block in self.blocks:
            lines.append(f"{names[block.label]}:")
            for line in block.lines:
                lines.append(_renamed(line, names))
        return [*lines, "}"]

    # -- registers -----------------------------------------------------------------------------------

    def source(self, kind: str) -> str:
        rng = self.rng
        if self.shape.slots == "mixed" and rng.random() < 0.5:
            return self._any(kind)
        choices = [slot for slot, one in self.fixed.items() if one == kind]
        choices += [slot for slot in self.written if self.scratch.get(slot) == kind] * 2
        if kind == "i" and rng.random() < 0.08:
            return rng.choice((self.one, self.zero, self.seven, self.flag))
        return _register(kind, rng.choice(choices))

    def target(self, kind: str) -> str:
        if self.shape.slots == "mixed" and self.rng.random() < 0.3:
            return self._any(kind)
        choices = [slot for slot, one in self.fixed.items() if one == kind]
        fresh = [slot for slot, one in self.scratch.items() if one == kind]
        if fresh and self.rng.random() < 0.5:
            slot = self.rng.choice(fresh)
            self.written.add(slot)
            return _register(kind, slot)
        return _register(kind, self.rng.choice(choices))

    def _any(self, kind: str) -> str:
        if kind in "IF":
            return _register(kind, 2 * self.rng.randrange(self.pool // 2))
        return _register(kind, self.rng.randrange(self.pool))

    def ref(self, *, moved: bool = False) -> str:
        return f"%{'R' if moved else 'r'}{self.rng.randrange(self.refs)}"

    def tame(self, kind: str, register: str, to: str | None = None) -> str:
        """A float without the bits of a NaN; in ``to`` or in a reserved register."""
        real = "f32" if kind == "f" else "f64"
        zero = self.fzero.partition(":")[0] if kind == "f" else self.fzero
        to = to or (self.tiny if kind == "f" else self.wide2)
        self.emit(f"{self.low} = vm.cmp.nan.{real} {register}")
        self.emit(f"{to} = vm.select.{real} {self.low} ? {zero} : {register}")
        return to

    # -- statements ----------------------------------------------------------------------------------

    def operation(self) -> None:
        rng = self.rng
        pick = rng.random()
        if pick < 0.55:
            self._simple(rng.choice(_SIMPLE))
        elif pick < 0.62:
            kind = rng.choice("iIfF")
            if self.shape.slots == "mixed" and kind in "fF":
                kind = "i"
            for line in _constant(rng, kind, self.target(kind), self.wide):
                self.emit(line)
        elif pick < 0.66:
            self._division()
        elif pick < 0.71:
            self._global()
        elif pick < 0.75:
            self._memory()
        elif pick < 0.79:
            kind = rng.choice("if")
            values = ", ".join(self.source(kind) for _ in range(rng.randrange(1, 5)))
            self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
            default, to = self.source(kind), self.target(kind)
            self.emit(f"{to} = vm.switch.{_TYPES[kind]} {self.low}[{values}] else {default}")
            if self.shape.slots == "mixed" and kind == "f":
                self.tame("f", to, to)
        elif pick < 0.94:
            self._reference()
        elif self.callees and self.calls:
            self._call()

    def _simple(self, operation: Operation) -> None:
        text = assembly_form(operation)
        result, result_kind = "", ""
        for one in operation.fields:
            assert one.kind is FieldKind.REGISTER and one.bank is not None
            kind = _BANKS[one.bank]
            if one.is_written:
                result, result_kind = self.target(kind), kind
                register = result
            else:
                register = self.source(kind)
                if operation.mnemonic.startswith("bitcast.f"):
                    register = self.tame(kind, register)
            text = text.replace(f"<{one.name}>", register)
        self.emit(text)
        if self.shape.slots == "mixed" and result_kind in "fF":
            self.tame(result_kind, result, result)

    def _division(self) -> None:
        kind = self.rng.choice("iI")
        name, sign = self.rng.choice(("div", "rem")), self.rng.choice("su")
        if kind == "i":
            self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
            self.emit(f"{self.low} = vm.or.i32 {self.low}, {self.one}")
            self.emit(f"{self.target('i')} = vm.{name}.i32.{sign} {self.source('i')}, {self.low}")
        else:
            self.emit(f"{self.wide} = vm.and.i64 {self.source('I')}, {self.mask}")
            self.emit(f"{self.wide2} = vm.ext.i32.i64.s {self.one}")
            self.emit(f"{self.wide} = vm.or.i64 {self.wide}, {self.wide2}")
            self.emit(f"{self.target('I')} = vm.{name}.i64.{sign} {self.source('I')}, {self.wide}")

    def _global(self) -> None:
        rng = self.rng
        kind = rng.choice("iIfF")
        place = {"i": 0, "I": 16, "f": 32, "F": 48}[kind] + rng.randrange(2) * (8 if kind in "IF" else 4)
        indirect = rng.random() < 0.5
        if indirect:
            self.emit(f"{self.low} = vm.const.i32 {place}")
        if rng.random() < 0.5:
            to = self.target(kind)
            at = f"load.indirect.{_TYPES[kind]} {self.low}" if indirect else f"load.{_TYPES[kind]} .rwdata[{place}]"
            self.emit(f"{to} = vm.global.{at}")
            return
        source = self.source(kind)
        if self.shape.slots == "mixed" and kind in "fF":
            keep = self.tiny if kind == "f" else self.wide2
            source = self.tame(kind, source, keep)
            if indirect:
                self.emit(f"{self.low} = vm.const.i32 {place}")
        at = (
            f"store.indirect.{_TYPES[kind]} {self.low}, {source}"
            if indirect
            else f"store.{_TYPES[kind]} {source}, .rwdata[{place}]"
        )
        self.emit(f"vm.global.{at}")

    def _memory(self) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            kind = self.element
            self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
            if rng.random() < 0.5:
                self.emit(f"{self.target(kind)} = vm.list.get.{_TYPES[kind]} {self.list}, {self.low}")
                return
            source = self.source(kind)
            if self.shape.slots == "mixed" and kind in "fF":
                source = self.tame(kind, source)
                self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
            self.emit(f"vm.list.set.{_TYPES[kind]} {self.list}, {self.low}, {source}")
            return
        kind = rng.choice(("i8", "i16", "i32", "i64"))
        value = "I" if kind == "i64" else "i"
        self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
        self.emit(f"{self.wide} = vm.ext.i32.i64.s {self.low}")
        if rng.random() < 0.5:
            sign = rng.choice((".u", ".s")) if kind in ("i8", "i16") else ""
            self.emit(f"{self.target(value)} = vm.buffer.load.{kind}{sign} {self.buffer}, {self.wide}")
        else:
            self.emit(f"vm.buffer.store.{kind} {self.source(value)}, {self.buffer}, {self.wide}")

    def _reference(self) -> None:
        rng = self.rng
        move = rng.random() < 0.4
        pick = rng.randrange(9)
        if pick == 0:
            self.emit(_constant(rng, "r", self.ref(), "")[0])
        elif pick == 1:
            source, to = self.ref(moved=move), self.ref()
            if source[2:] == to[2:]:
                source = source.lower()
            self.emit(f"{to} = vm.assign.ref {source}")
        elif pick == 2:
            yes, no, chosen = rng.sample(range(self.refs), 3)
            first = f"%{rng.choice('rR')}{yes}"
            second = f"%{rng.choice('rR')}{no}"
            self.emit(f"%r{chosen} = vm.select.ref {self.source('i')} ? {first} : {second} -> !vm.buffer")
        elif pick == 3:
            self.emit(f"vm.discard.refs {', '.join(dict.fromkeys(self.ref() for _ in range(rng.randrange(1, 3))))}")
        elif pick == 4:
            operation = rng.choice(("eq", "ne"))
            self.emit(f"{self.target('i')} = vm.cmp.{operation}.ref {self.ref()}, {self.ref()}")
        elif pick == 5:
            self.emit(f"{self.target('i')} = vm.cmp.nz.ref {self.ref()}")
        elif pick == 6:
            place = rng.randrange(3)
            indirect = rng.random() < 0.5
            if indirect:
                self.emit(f"{self.low} = vm.const.i32 {place}")
            if rng.random() < 0.5:
                at = f"indirect.ref {self.low}" if indirect else f"ref .refs[{place}]"
                self.emit(f"{self.ref()} = vm.global.load.{at} : !vm.buffer")
            elif indirect:
                self.emit(f"vm.global.store.indirect.ref {self.low} : !vm.buffer, {self.ref(moved=move)}")
            else:
                self.emit(f"vm.global.store.ref {self.ref(moved=move)}, .refs[{place}] : !vm.buffer")
        elif pick == 7:
            self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.one}")
            values = [self.ref() for _ in range(rng.randrange(1, 3))]
            self.emit(f"{self.ref()} = vm.switch.ref {self.low}[{', '.join(values)}] else {self.ref()} -> !vm.buffer")
        else:
            source, to = self.ref(), self.ref()
            self.emit(f"{to} = vm.cast.any.ref {source} : !vm.ref<?> -> !vm.buffer")

    def _call(self) -> None:
        rng = self.rng
        callee = rng.choice(self.callees)
        self.calls -= 1
        given: list[str] = []
        for kind in callee.arguments:
            if kind != "r":
                given.append(self.source(kind))
                continue
            register = self.ref()
            if f"%R{register[2:]}" in given:
                register = self.buffer
            elif rng.random() < 0.4 and register not in given:
                register = register.replace("r", "R")
            given.append(register)
        results = [self.target(kind) if kind != "r" else self.ref() for kind in callee.results]
        left = ", ".join(results)
        if rng.random() < 0.3 and "f" not in callee.results and "F" not in callee.results:
            label = self.label()
            self.end(f"vm.call.yieldable @{callee.name}({', '.join(given)}) -> {label}({left})")
            self.start(label)
        else:
            self.emit(f"{left} = vm.call @{callee.name}({', '.join(given)})")
            if self.shape.slots == "mixed":
                for kind, result in zip(callee.results, results, strict=True):
                    if kind in "fF":
                        self.tame(kind, result, result)

    def straight(self) -> None:
        for _ in range(self.rng.randrange(1, 6)):
            self.operation()

    # -- control flow --------------------------------------------------------------------------------

    def remap(self) -> str:
        """Random branch operands; copies are one after another."""
        rng = self.rng
        pairs: list[str] = []
        if rng.random() < 0.4:
            for kind in "iIfF":
                slots = [slot for slot, one in self.fixed.items() if one == kind]
                if len(slots) < 2 or rng.random() < 0.5:
                    continue
                if rng.random() < 0.5:
                    chosen = rng.sample(slots, min(len(slots), rng.randrange(2, 5)))
                    moves = list(zip(chosen[1:], chosen, strict=False))
                else:
                    moves = [(rng.choice(slots), rng.choice(slots)) for _ in range(rng.randrange(1, 4))]
                for source, to in moves:
                    halves = [f"%i{source}->%i{to}"]
                    if kind in "IF":
                        halves.append(f"%i{source + 1}->%i{to + 1}")
                        if rng.random() < 0.3:
                            halves.reverse()
                    pairs += halves
            if self.written and rng.random() < 0.5:
                slot = rng.choice(sorted(self.written))
                kind = self.scratch[slot]
                to = rng.choice([one for one, other in self.fixed.items() if other == kind])
                pairs.append(f"%i{slot}->%i{to}")
                if kind in "IF":
                    pairs.append(f"%i{slot + 1}->%i{to + 1}")
            if self.shape.slots == "mixed":
                pairs += [f"{self._any('i')}->{self._any('i')}" for _ in range(rng.randrange(3))]
            for _ in range(rng.randrange(3)):
                source, to = rng.sample(range(self.refs), 2)
                pairs.append(f"%{rng.choice('rR')}{source}->%r{to}")
        return f"({', '.join(pairs)})"

    def go(self, label: str) -> None:
        if self.shape.yields and self.rng.random() < 0.2:
            self.end(f"vm.yield {label}{self.remap()}")
        elif self.rng.random() < 0.03:
            self.emit(f"{self.low} = vm.const.i32.zero")
            self.end(f'vm.fail {self.low}, "never"')
            self.start(self.label())
            self.end(f"vm.br {label}{self.remap()}")
        else:
            self.end(f"vm.br {label}{self.remap()}")

    def flagged(self) -> str:
        """A register with a condition."""
        rng = self.rng
        pick = rng.random()
        if pick < 0.2:
            return self.source("i")
        if pick < 0.5:
            self.emit(f"{self.flag} = vm.cmp.lt.i32.{rng.choice('su')} {self.source('i')}, {self.source('i')}")
        elif pick < 0.65:
            self.emit(f"{self.flag} = vm.cmp.lt.i64.{rng.choice('su')} {self.source('I')}, {self.source('I')}")
        elif pick < 0.8:
            self.emit(f"{self.flag} = vm.cmp.lt.f32.{rng.choice('ou')} {self.source('f')}, {self.source('f')}")
        else:
            self.emit(f"{self.flag} = vm.cmp.eq.i32 {self.source('i')}, {self.source('i')}")
            self.emit(f"{self.low} = vm.cmp.nz.ref {self.ref()}")
            self.emit(f"{self.flag} = vm.{rng.choice(('and', 'or', 'xor'))}.i32 {self.flag}, {self.low}")
            if rng.random() < 0.5:
                self.emit(f"{self.flag} = vm.xor.i32 {self.flag}, {self.one}")
        return self.flag

    def prologue(self) -> None:
        rng = self.rng
        self.start("^entry")
        self.emit(f"{self.fuel} = vm.const.i32 {rng.choice((3, 9, 25))}")
        self.emit(f"{self.one} = vm.const.i32 1")
        self.emit(f"{self.seven} = vm.const.i32 7")
        self.emit(f"{self.zero} = vm.const.i32.zero")
        self.emit(f"{self.mask} = vm.const.i64 5")
        self.emit(f"{self.wide} = vm.const.i64 64")
        self.emit(f"{self.low} = vm.const.i32 8")
        self.emit(f"{self.buffer} = vm.buffer.alloc {self.wide}, {self.low}")
        self.emit(f"{self.list} = vm.list.alloc {self.low} : !vm.list<{_TYPES[self.element]}>")
        self.emit(f"vm.list.resize {self.list}, {self.low}")
        self.emit(f"{self.wide} = vm.const.i64 0")
        # Copies of what was never written are zeros of no kind, which makes a function one that mixes kinds.
        written = rng.choice((0.6, 1.0, 1.0))
        for slot, kind in self.fixed.items():
            if slot >= self.first_free and rng.random() < written:
                for line in _constant(rng, kind, _register(kind, slot), self.wide):
                    self.emit(line)

    def epilogue(self) -> None:
        rng = self.rng
        # A word of everything, so that no difference is lost.
        self.emit(f"{self.wide2} = vm.const.i64 1")
        for slot, kind in self.fixed.items():
            if rng.random() < 0.7:
                to = f"%i{self.base}:{self.base + 1}"
                for line in _word(kind, _register(kind, slot), to, self.wide, f"%i{self.base + 2}:{self.base + 3}"):
                    self.emit(line)
                self.emit(f"{self.wide2} = vm.mul.i64 {self.wide2}, {self.mask}")
                self.emit(f"{self.wide2} = vm.xor.i64 {self.wide2}, {to}")
        for number in range(self.refs):
            for place in range(2):
                self.emit(f"%r{self.refs + 2} = vm.const.ref.rodata {place}")
                self.emit(f"{self.low} = vm.cmp.eq.ref %r{number}, %r{self.refs + 2}")
                self.emit(f"{self.wide} = vm.ext.i32.i64.s {self.low}")
                self.emit(f"{self.wide2} = vm.mul.i64 {self.wide2}, {self.mask}")
                self.emit(f"{self.wide2} = vm.xor.i64 {self.wide2}, {self.wide}")
        texts: list[str] = []
        moved: set[str] = set()
        for position, kind in enumerate(self.results):
            if kind == "r":
                register = self.ref()
                if register not in moved and rng.random() < 0.5:
                    register = register.replace("r", "R")
                if register.lower() in moved:
                    register = self.buffer
                moved.add(register.lower())
                texts.append(register)
            elif kind == "I" and position == self.results.index("I"):
                texts.append(self.wide2)
            else:
                register = self.source(kind)
                if kind in "fF" and self.shape.slots == "mixed":
                    register = self.tame(kind, register, register)
                texts.append(register)
        self.end(f"vm.return {', '.join(texts)}")

    @property
    def base(self) -> int:
        return self.pool + self.pool % 2 + 16

    def write(self) -> None:
        if self.rng.random() < 0.8 and "I" not in self.results:
            self.results.insert(self.rng.randrange(len(self.results) + 1), "I")
        self.prologue()
        self.exit = self.label()
        self.fails = self.label()
        if self.shape.graph == "structured":
            self.budget = self.shape.size
            self.sequence(3)
            self.go(self.exit)
        else:
            self._random_graph()
        self.start(self.exit)
        self.epilogue()
        self.start(self.fails)
        self.emit(f"{self.low} = vm.const.i32 9")
        for _ in range(self.rng.randrange(8)):
            self.emit(f"vm.discard.refs {self.ref()}")
        self.end(f'vm.fail {self.low}, "out of fuel"')

    def sequence(self, depth: int) -> None:
        for _ in range(self.rng.randrange(1, 4)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        rng = self.rng
        self.budget -= 1
        pick = rng.random()
        if depth <= 0 or self.budget < 0 or pick < 0.25:
            self.straight()
        elif pick < 0.4:
            self._if(depth, other=rng.random() < 0.6)
        elif pick < 0.62:
            self._loop(depth)
        elif pick < 0.72:
            self._table(depth)
        elif pick < 0.82 and self.loops:
            self._leave()
        elif pick < 0.9:
            self._check()
        else:
            self._short_circuit(depth)

    def branch(self, yes: str, no: str) -> None:
        test = self.flagged()
        self.end(f"vm.cond_br {test}, {yes}{self.remap()}, {no}{self.remap()}")

    def _if(self, depth: int, *, other: bool) -> None:
        yes, join = self.label(), self.label()
        no = self.label() if other else join
        self.branch(yes, no)
        self.start(yes)
        self.sequence(depth - 1)
        self.go(join)
        if other:
            self.start(no)
            self.sequence(depth - 1)
            self.go(join)
        self.start(join)

    def _burn(self, stop: str) -> None:
        self.emit(f"{self.fuel} = vm.sub.i32 {self.fuel}, {self.one}")
        self.emit(f"{self.flag} = vm.cmp.lt.i32.s {self.fuel}, {self.zero}")
        go_on = self.label()
        self.end(f"vm.cond_br {self.flag}, {stop}{self.remap()}, {go_on}()")
        self.start(go_on)

    def _loop(self, depth: int) -> None:
        header, behind = self.label(), self.label()
        self.loops.append(_Loop(header, behind))
        step = self._counter() if self.rng.random() < 0.5 else None
        self.go(header)
        self.start(header)
        if step is not None and self.rng.random() < 0.5:
            # The counter is asked first, so that the header has nothing else.
            body = self.label()
            self.end(f"vm.cond_br {self._ask(step)}, {body}{self.remap()}, {behind}{self.remap()}")
            self.start(body)
            step = step[:1]
        self._burn(behind)
        if step is not None and len(step) > 1:
            body = self.label()
            self.end(f"vm.cond_br {self._ask(step)}, {body}(), {behind}{self.remap()}")
            self.start(body)
        elif self.rng.random() < 0.6:
            body = self.label()
            self.branch(*((body, behind) if self.rng.random() < 0.5 else (behind, body)))
            self.start(body)
        self.sequence(depth - 1)
        if step is not None:
            kind, register = step[0]
            by = self.one
            if kind == "I":
                self.emit(f"{self.wide} = vm.ext.i32.i64.s {self.one}")
                by = self.wide
            self.emit(
                f"{register} = vm.{self.rng.choice(('add', 'add', 'add', 'sub'))}.{_TYPES[kind]} {register}, {by}"
            )
        if self.rng.random() < 0.3:
            self.branch(header, behind)
        else:
            self.go(header)
        self.loops.pop()
        self.start(behind)

    def _counter(self) -> list[tuple[str, str]]:
        """Starts a counter; it and what it is compared with."""
        kind = self.rng.choice("iI")
        register, limit = self.target(kind), self.source(kind)
        words = (
            (0, 0, 1, -2, (1 << 31) - 3, (1 << 30) - 2) if kind == "i" else (0, 0, 1, -2, (1 << 63) - 3, (1 << 62) - 2)
        )
        self.emit(f"{register} = vm.const.{_TYPES[kind]} {self.rng.choice(words)}")
        return [(kind, register), (kind, limit)]

    def _ask(self, step: list[tuple[str, str]]) -> str:
        (kind, register), (_, limit) = step
        comparison = self.rng.choice(("lt", "lt", "lt", "ne", "eq"))
        sign = f".{self.rng.choice('ssu')}" if comparison == "lt" else ""
        self.emit(f"{self.flag} = vm.cmp.{comparison}.{_TYPES[kind]}{sign} {register}, {limit}")
        return self.flag

    def _leave(self) -> None:
        """A conditional break or continue of any loop around, or a return."""
        loop = self.rng.choice(self.loops)
        go_on = self.label()
        to = self.rng.choice((loop.header, loop.exit, loop.exit, self.exit))
        if self.rng.random() < 0.5:
            self.branch(to, go_on)
        else:
            path = self.label()
            self.branch(path, go_on)
            self.start(path)
            self.straight()
            self.go(to)
        self.start(go_on)

    def _check(self) -> None:
        go_on = self.label()
        self.emit(f"{self.flag} = vm.cmp.lt.i32.s {self.fuel}, {self.zero}")
        self.emit(f"{self.low} = vm.const.i32 -100")
        self.emit(f"{self.flag} = vm.cmp.lt.i32.s {self.fuel}, {self.low}")
        self.end(f"vm.cond_br {self.flag}, {self.fails}(), {go_on}{self.remap()}")
        self.start(go_on)

    def _short_circuit(self, depth: int) -> None:
        yes, no, join, second = (self.label() for _ in range(4))
        self.branch(second, no)
        self.start(second)
        self.straight()
        self.branch(yes, no)
        self.start(yes)
        self.sequence(depth - 1)
        self.go(join)
        self.start(no)
        self.sequence(depth - 1)
        self.go(join)
        self.start(join)

    def _table(self, depth: int) -> None:
        rng = self.rng
        join = self.label()
        labels = [self.label() for _ in range(rng.randrange(1, 4))]
        count = rng.randrange(0, 12 if rng.random() < 0.3 else 4)
        targets = [rng.choice([*labels, join]) for _ in range(count)]
        default = labels[0]
        self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
        cases = "".join(f", {index}: {to}{self.remap()}" for index, to in enumerate(targets))
        self.end(f"vm.br_table {self.low} {{ default: {default}{self.remap()}{cases} }}")
        for position, label in enumerate(labels):
            self.start(label)
            self.sequence(depth - 1)
            self.go(labels[position + 1] if position + 1 < len(labels) and rng.random() < 0.3 else join)
        self.start(join)

    def _random_graph(self) -> None:
        rng = self.rng
        labels = [self.label() for _ in range(max(2, rng.randrange(self.shape.size)))]
        self.go(labels[0])
        for position, label in enumerate(labels):
            self.start(label)
            if rng.random() < 0.6:
                self._burn(self.exit)
                burnt = True
            else:
                burnt = False
            self.straight()
            choices = labels if burnt else [*labels[position + 1 :], self.exit]
            if not burnt and self.blocks[-1].label != label:
                choices = [*labels[position + 1 :], self.exit]
            near = choices[max(0, len(choices) // 2 - 3) : len(choices) // 2 + 4] if rng.random() < 0.5 else choices
            pick = rng.random()
            if pick < 0.25:
                self.go(rng.choice(near))
            elif pick < 0.85:
                self.branch(rng.choice(choices), rng.choice(near))
            else:
                self.emit(f"{self.low} = vm.and.i32 {self.source('i')}, {self.seven}")
                cases = "".join(f", {index}: {rng.choice(choices)}{self.remap()}" for index in range(rng.randrange(6)))
                self.end(f"vm.br_table {self.low} {{ default: {rng.choice(near)}{self.remap()}{cases} }}")


def _renamed(line: str, names: dict[str, str]) -> str:
    parts = line.split("^bb")
    for index, part in enumerate(parts[1:], 1):
        digits = 0
        while digits < len(part) and part[digits].isdigit():
            digits += 1
        parts[index] = names[f"^bb{part[:digits]}"][3:] + part[digits:]
    return "^bb".join(parts)
