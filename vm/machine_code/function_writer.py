"""Writes one function as LLVM IR.

The function is ``i32 f(ptr context, ptr frame, i32 entry)``. Entry 0 is its start, entry n the place behind instruction
n - 1, which is the marker of a loop's header. It returns 0 when it has returned its results, or how many frames, its
own and those behind it, are to be continued elsewhere: where a guard says so, and where the fuel is spent.

Registers are kept in LLVM's own within a block, and in their homes between blocks. So leaving stores little, and any
header can be entered; LLVM has little to do. docs/design/vm.md says what else was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from ..bytecode.decoder import Instruction
from ..bytecode.isa import MOVE_BIT, FieldKind
from ..translation.basic_block import Block, Edge, Variable, field_value, registers_of
from ..translation.numerics import bitcast_f32_i32, bitcast_f64_i64
from .layout import Layout, callee_of, is_known
from .operations import TEMPLATES

TYPES: Final = {"i": "i32", "I": "i64", "f": "float", "F": "double", "r": "i64", "s": "i32"}
_ZEROS: Final = {"i": "0", "I": "0", "f": "0.0", "F": "0.0", "r": "0", "s": "0"}
_BANKS: Final = {"i32": "i32", "i64": "i64", "f32": "float", "f64": "double"}
OUT_OF_FUEL: Final = 1 << 32  # beside the entry in word 0 of the frame that left
# Words of the context; the last three count down, and code leaves before they become negative.
GLOBALS, TABLE, REFERENCES = 1, 2, 3  # addresses: of globals, descriptors, and the ordinals of reference globals
FUEL: Final = 0  # about how many additions there may be
BUDGET: Final = 4  # bytes of the host's stack
ROOM: Final = 5  # frames of the VM's stack


class Value(NamedTuple):
    """The value of a variable in the block that is being written."""

    text: str
    is_bit: bool = False  # an i1 that stands for an i32


@dataclass(frozen=True)
class Unit:
    """What the functions of one unit share.

    Attributes:
        layouts: of each function, by ordinal.
        closed: functions that may be called.
        deep: those of them whose calls take a frame of the VM's stack.
        rodata: the reference of each rodata segment that is used.
        references: for each reference global that is used where in the context's array it is.
        types: the bit of each reference type that is checked.
        global_bytes: of the module's globals, a multiple of 8.
    """

    layouts: Mapping[int, Layout]
    closed: frozenset[int]
    deep: frozenset[int]
    rodata: Mapping[int, int]
    references: Mapping[int, int]
    types: Mapping[int, int]
    global_bytes: int


class FunctionWriter:
    """Writes one function of a unit."""

    def __init__(self, unit: Unit, ordinal: int) -> None:
        self.unit = unit
        self.ordinal = ordinal
        self.layout = unit.layouts[ordinal]
        self.analysis = self.layout.analysis
        self.lines: list[str] = []
        self._stubs: list[str] = []
        self._count = 0
        self._values: dict[str, Value] = {}
        self._dirty: dict[str, int] = {}  # names whose homes are not up to date, with the registers that they take
        self._context: set[str] = set()  # words of the context that the code uses
        self._homed: set[str] = set()  # homes that have an address in the code
        self._literals = {  # of variables that are written once, with a constant
            operands.writes[0]: _literal(instruction, operands.writes[0][0])
            for instruction, operands in zip(self.analysis.instructions, self.analysis.operands, strict=True)
            if self.analysis.constants and operands.writes and operands.writes[0] in self.analysis.constants
        }

    # -- the function --------------------------------------------------------------------------------

    def write(self, linkage: str) -> list[str]:
        """The lines of the function."""
        analysis, layout = self.analysis, self.layout
        for block in analysis.blocks:
            if block.index in layout.loops.reachable:
                self._block(block)
        body, self.lines = self.lines, []
        given = {name for variable in analysis.arguments for name in layout.names(*variable)}
        live = analysis.blocks[0].live_in
        zeroed = [
            name for name in layout.homes if name not in given and self._mask(name) & live and name in self._homed
        ]
        self.lines += [
            f"define {linkage}i32 @f{self.ordinal}(ptr noalias %context, ptr noalias %frame, i32 %entry) nounwind {{",
            "start:",
        ]
        for word, name in ((GLOBALS, "globals"), (TABLE, "table"), (REFERENCES, "references")):
            if name in self._context:
                self._line(f"%p_{name} = getelementptr i64, ptr %context, i64 {word}")
                self._line(f"%{name} = load ptr, ptr %p_{name}, !invariant.load !0")
        for name in sorted(self._homed | given, key=layout.homes.__getitem__):
            self._line(f"%h_{name} = {self._address(layout.homes[name])}")
        entries = " ".join(
            f"i32 {analysis.blocks[index].start + 1}, label %b{index}" for index in sorted(layout.loops.headers)
        )
        self.lines += [f"  switch i32 %entry, label %begin [ {entries} ]", "begin:"]
        self.lines += [f"  store {TYPES[name[0]]} {_ZEROS[name[0]]}, ptr %h_{name}" for name in zeroed]
        self.lines.append("  br label %b0")
        self.lines += body
        self.lines += self._stubs
        self.lines.append("}")
        return self.lines

    def _next(self) -> str:
        self._count += 1
        return f"t{self._count}"

    @staticmethod
    def _address(word: int) -> str:
        return f"getelementptr i64, ptr %frame, i64 {word}"

    def _line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def _mask(self, name: str) -> int:
        kind, number = name[0], int(name[1:])
        return self.analysis.mask([("i" if kind == "s" else kind, number)])

    # -- variables -----------------------------------------------------------------------------------

    def _read_name(self, name: str) -> Value:
        value = self._values.get(name)
        if value is None:
            text = f"%{self._next()}"
            self._homed.add(name)
            self._line(f"{text} = load {TYPES[name[0]]}, ptr %h_{name}")
            value = self._values[name] = Value(text)
        return value

    def _number(self, value: Value) -> str:
        """The value as an i32 where it is a bit."""
        if not value.is_bit:
            return value.text
        text = f"%{self._next()}"
        self._line(f"{text} = zext i1 {value.text} to i32")
        return text

    def _read(self, variable: Variable) -> str:
        kind, number = variable
        literal = self._literals.get(variable)
        if literal is not None:
            return literal
        if not self.layout.is_raw or kind == "r":
            name = f"{kind}{number}"
            value = self._read_name(name)
            if value.is_bit:
                text = self._number(value)
                self._values[name] = Value(text)
                return text
            return value.text
        low = self._read_name(f"s{number}").text
        if kind == "i":
            return low
        n = self._next()
        if kind == "f":
            self._line(f"%{n} = bitcast i32 {low} to float")
            return f"%{n}"
        high = self._read_name(f"s{number + 1}").text
        self._line(f"%{n}l = zext i32 {low} to i64")
        self._line(f"%{n}h = zext i32 {high} to i64")
        self._line(f"%{n}s = shl i64 %{n}h, 32")
        self._line(f"%{n} = or i64 %{n}l, %{n}s")
        if kind == "I":
            return f"%{n}"
        self._line(f"%{n}f = bitcast i64 %{n} to double")
        return f"%{n}f"

    def _condition(self, variable: Variable) -> str:
        """A variable as an i1."""
        if not self.layout.is_raw:
            value = self._values.get(f"{variable[0]}{variable[1]}")
            if value is not None and value.is_bit:
                return value.text
        number = self._read(variable)
        text = f"%{self._next()}"
        self._line(f"{text} = icmp ne i32 {number}, 0")
        return text

    def _write(self, variable: Variable, value: Value) -> None:
        kind, number = variable
        if not self.layout.is_raw or kind == "r":
            self._write_name(f"{kind}{number}", value)
            return
        text = self._number(value)
        n = self._next()
        if kind == "f":
            self._line(f"%{n} = bitcast float {text} to i32")
            text = f"%{n}"
        elif kind in "IF":
            if kind == "F":
                self._line(f"%{n}b = bitcast double {text} to i64")
                text = f"%{n}b"
            self._line(f"%{n}l = trunc i64 {text} to i32")
            self._line(f"%{n}s = lshr i64 {text}, 32")
            self._line(f"%{n}h = trunc i64 %{n}s to i32")
            self._write_name(f"s{number}", Value(f"%{n}l"))
            self._write_name(f"s{number + 1}", Value(f"%{n}h"))
            return
        self._write_name(f"s{number}", Value(text))

    def _write_name(self, name: str, value: Value) -> None:
        self._values[name] = value
        self._dirty[name] = self._mask(name)

    def _flushed(self, live: int) -> list[str]:
        """Lines that bring the homes of live registers up to date."""
        lines: list[str] = []
        for name, mask in self._dirty.items():
            if not mask & live:
                continue
            value = self._values[name]
            text = value.text
            if value.is_bit:
                text = f"%{self._next()}"
                lines.append(f"  {text} = zext i1 {value.text} to i32")
            self._homed.add(name)
            lines.append(f"  store {TYPES[name[0]]} {text}, ptr %h_{name}")
        return lines

    # -- leaving -------------------------------------------------------------------------------------

    def _stub(self, lines: Iterable[str], where: int, depth: str = "1") -> str:
        """Adds a block that leaves the function; returns its label."""
        label = f"x{self._next()}"
        self._stubs.append(f"{label}:")
        self._stubs += lines
        self._stubs += [f"  store i64 {where}, ptr %frame", f"  ret i32 {depth}"]
        return label

    def _guard(self, bad: str, block: Block, index: int) -> None:
        """Leaves before an instruction where a condition holds."""
        live = self.analysis.live_after(block)[index - 1 - block.start]
        label, on = self._stub(self._flushed(live), index), f"c{self._next()}"
        self._line(f"br i1 {bad}, label %{label}, label %{on}")
        self.lines.append(f"{on}:")

    # -- blocks --------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        self._values, self._dirty = {}, {}
        self.lines.append(f"b{block.index}:")
        for index in range(block.start + 1, block.end):
            if not self._is_native(self.analysis.instructions[index]):
                self._guard("true", block, index)
                self._line("unreachable")
                return
            if index < block.end - 1:
                self._instruction(block, index)
        self._terminator(block, block.end - 1)

    def _is_native(self, instruction: Instruction) -> bool:
        callee = callee_of(instruction)
        return is_known(instruction) if callee is None else callee in self.unit.closed

    def _instruction(self, block: Block, index: int) -> None:
        instruction = self.analysis.instructions[index]
        operands = self.analysis.operands[index]
        mnemonic = instruction.operation.mnemonic
        template = TEMPLATES.get(mnemonic)
        if template is not None:
            texts = [
                self._condition(one) if template.takes_bit and not position else self._read(one)
                for position, one in enumerate(operands.reads)
            ]
            n = self._next()
            if "%table" in template.guard:
                self._context.add("table")
            if template.guard:
                for line in template.guard.format(*texts, n=n).split("\n"):
                    self._line(line)
                self._guard(f"%{n}bad", block, index)
            for line in template.text.format(*texts, n=n, r=f"%{n}r").split("\n"):
                self._line(line)
            if operands.writes:
                self._write(operands.writes[0], Value(f"%{n}r", template.is_bit))
        elif callee_of(instruction) is not None:
            self._call(block, index)
            return
        elif mnemonic.startswith("const.") and "ref" not in mnemonic:
            variable = operands.writes[0]
            if variable not in self.analysis.constants:
                self._write(variable, Value(_literal(instruction, variable[0])))
        elif mnemonic.startswith("switch."):
            self._switch(operands.reads, operands.writes[0])
        elif mnemonic.startswith("global.") and not mnemonic.endswith(".ref"):
            self._global(block, index, instruction)
        elif mnemonic != "discard.refs":
            self._write(operands.writes[0], Value(self._reference(block, index, instruction)))
        self._null(operands.moves, operands.writes)

    def _null(self, moves: Iterable[int], written: Iterable[Variable]) -> None:
        for number in moves:
            if ("r", number) not in written:
                self._write_name(f"r{number}", Value("0"))

    def _switch(self, reads: tuple[Variable, ...], result: Variable) -> None:
        at, text, *values = (self._read(one) for one in reads)
        t = TYPES[result[0]]
        for position, value in enumerate(values):
            n = self._next()
            self._line(f"%{n}c = icmp eq i32 {at}, {position}")
            self._line(f"%{n} = select i1 %{n}c, {t} {value}, {t} {text}")
            text = f"%{n}"
        self._write(result, Value(text))

    def _global(self, block: Block, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        parts = instruction.operation.mnemonic.split(".")
        t, size = _BANKS[parts[-1]], 8 if parts[-1].endswith("64") else 4
        n = self._next()
        self._context.add("globals")
        place = str(instruction.values[0])
        if "indirect" in parts:
            offset = self._read(operands.reads[0])
            self._line(f"%{n}o = zext i32 {offset} to i64")
            self._line(f"%{n}f = icmp uge i64 %{n}o, {self.unit.global_bytes}")
            self._line(f"%{n}e = and i32 {offset}, {size - 1}")
            self._line(f"%{n}m = icmp ne i32 %{n}e, 0")
            self._line(f"%{n}b = or i1 %{n}f, %{n}m")
            self._guard(f"%{n}b", block, index)
            place = f"%{n}o"
        self._line(f"%{n}a = getelementptr i8, ptr %globals, i64 {place}")
        if parts[1] == "load":
            self._line(f"%{n}v = load {t}, ptr %{n}a")
            self._write(operands.writes[0], Value(f"%{n}v"))
        else:
            self._line(f"store {t} {self._read(operands.reads[-1])}, ptr %{n}a")

    def _reference(self, block: Block, index: int, instruction: Instruction) -> str:
        """A result that is a reference."""
        reads = self.analysis.operands[index].reads
        n = self._next()
        match instruction.operation.mnemonic:
            case "const.ref.zero":
                return "0"
            case "const.ref.rodata":
                return str(self.unit.rodata[cast(int, instruction.values[0])])
            case "assign.ref":
                return self._read(reads[0])
            case "cast.any.ref":
                text = self._read(reads[0])
            case "select.ref":
                condition = self._condition(reads[0])
                yes, no = self._read(reads[1]), self._read(reads[2])
                self._line(f"%{n}s = select i1 {condition}, i64 {yes}, i64 {no}")
                text = f"%{n}s"
            case _:  # global.load.ref
                self._context.add("references")
                place = self.unit.references[cast(int, instruction.values[0])]
                self._line(f"%{n}g = getelementptr i64, ptr %references, i64 {place}")
                self._line(f"%{n}s = load i64, ptr %{n}g")
                text = f"%{n}s"
        bit = self.unit.types[cast(int, field_value(instruction, FieldKind.TYPE))]
        self._context.add("table")
        self._line(f"%{n}h = shl i64 {text}, 2")
        self._line(f"%{n}o = or i64 %{n}h, 3")
        self._line(f"%{n}p = getelementptr i64, ptr %table, i64 %{n}o")
        self._line(f"%{n}m = load i64, ptr %{n}p, !invariant.load !0")
        self._line(f"%{n}k = and i64 %{n}m, {1 << bit}")
        self._line(f"%{n}b = icmp eq i64 %{n}k, 0")
        self._guard(f"%{n}b", block, index)
        return text

    # -- calls ---------------------------------------------------------------------------------------

    def _listed(self, index: int, instruction: Instruction) -> list[str]:
        """The values of a list of operands; a reference that is moved is null for later operands."""
        gone: set[int] = set()
        texts: list[str] = []
        registers = registers_of(instruction, FieldKind.OPERANDS)
        for variable, register in zip(self.analysis.operands[index].reads, registers, strict=True):
            is_ref = variable[0] == "r"
            texts.append("0" if is_ref and variable[1] in gone else self._read(variable))
            if is_ref and register & MOVE_BIT:
                gone.add(variable[1])
        return texts

    def _call(self, block: Block, index: int) -> None:
        instruction = self.analysis.instructions[index]
        operands = self.analysis.operands[index]
        ordinal = callee_of(instruction)
        assert ordinal is not None
        callee = self.unit.layouts[ordinal]
        base = self.layout.size
        spent = {  # words of the context, and what a call takes of them
            FUEL: f"{callee.cost}",
            BUDGET: f"STACK_{ordinal}",
        }
        if ordinal in self.unit.deep:
            spent[ROOM] = "1"
        n = self._next()
        bad = ""
        for word, count in spent.items():
            self._line(f"%{n}a{word} = getelementptr i64, ptr %context, i64 {word}")
            self._line(f"%{n}b{word} = load i64, ptr %{n}a{word}")
            self._line(f"%{n}c{word} = sub i64 %{n}b{word}, {count}")
            if word == FUEL:
                self._line(f"store i64 %{n}c{word}, ptr %{n}a{word}")
            self._line(f"%{n}n{word} = icmp slt i64 %{n}c{word}, 0")
            if bad:
                self._line(f"%{n}o{word} = or i1 {bad}, %{n}n{word}")
            bad = f"%{n}o{word}" if bad else f"%{n}n{word}"
        self._guard(bad, block, index)
        for word in spent:
            if word != FUEL:
                self._line(f"store i64 %{n}c{word}, ptr %{n}a{word}")
        for (kind, number), text in zip(callee.analysis.arguments, self._listed(index, instruction), strict=True):
            self._pass(callee, kind, number, text)
        self._line(f"%{n}f = {self._address(base)}")
        self._line(f"%{n}d = call i32 @f{ordinal}(ptr %context, ptr %{n}f, i32 0)")
        self._line(f"%{n}c = icmp ne i32 %{n}d, 0")
        live = self.analysis.live_after(block)[index - block.start]
        live &= ~(self.analysis.mask(operands.writes) | self.analysis.mask(("r", one) for one in operands.moves))
        lines = [f"  %{n}s = add i32 %{n}d, 1", *self._flushed(live)]
        label = self._stub(lines, index + 1, f"%{n}s")
        self._line(f"br i1 %{n}c, label %{label}, label %{n}o")
        self.lines.append(f"{n}o:")
        for word in spent:
            if word != FUEL:
                self._line(f"store i64 %{n}b{word}, ptr %{n}a{word}")
        self._null(operands.moves, operands.writes)
        for position, variable in enumerate(operands.writes):
            t = TYPES[variable[0]]
            self._line(f"%{n}p{position} = {self._address(base + 1 + position)}")
            self._line(f"%{n}r{position} = load {t}, ptr %{n}p{position}")
            self._write(variable, Value(f"%{n}r{position}"))

    def _pass(self, callee: Layout, kind: str, number: int, text: str) -> None:
        """Stores an argument in the callee's frame."""
        names = callee.names(kind, number)
        n = self._next()
        t = TYPES[kind]
        if len(names) == 1:  # an f32 and the word with its bits are stored alike
            self._line(f"%{n} = {self._address(self.layout.size + callee.homes[names[0]])}")
            self._line(f"store {t} {text}, ptr %{n}")
            return
        if kind == "F":
            self._line(f"%{n}b = bitcast double {text} to i64")
            text = f"%{n}b"
        self._line(f"%{n}l = trunc i64 {text} to i32")
        self._line(f"%{n}s = lshr i64 {text}, 32")
        self._line(f"%{n}h = trunc i64 %{n}s to i32")
        for half, name in zip("lh", names, strict=True):
            self._line(f"%{n}{half}p = {self._address(self.layout.size + callee.homes[name])}")
            self._line(f"store i32 %{n}{half}, ptr %{n}{half}p")

    # -- terminators ---------------------------------------------------------------------------------

    def _terminator(self, block: Block, index: int) -> None:
        instruction = self.analysis.instructions[index]
        mnemonic = instruction.operation.mnemonic
        reads = self.analysis.operands[index].reads
        if mnemonic == "return":
            n = self._next()
            texts = self._listed(index, instruction)
            for position, ((kind, _), text) in enumerate(zip(reads, texts, strict=True)):
                self._line(f"%{n}p{position} = {self._address(1 + position)}")
                self._line(f"store {TYPES[kind]} {text}, ptr %{n}p{position}")
            self._line("ret i32 0")
            return
        if mnemonic == "fail":
            self._guard(self._condition(reads[0]) if block.edges else "true", block, index)
            if not block.edges:
                self._line("unreachable")
                return
        elif callee_of(instruction) is not None:
            self._call(block, index)
        if mnemonic in ("cond_br", "br_table"):
            selector = self._condition(reads[0]) if mnemonic == "cond_br" else self._read(reads[0])
            self.lines += self._flushed(block.live_out)
            labels = [self._target(block, edge) for edge in block.edges]
            if mnemonic == "cond_br":
                self._line(f"br i1 {selector}, label %{labels[0]}, label %{labels[1]}")
            else:
                cases = " ".join(f"i32 {position}, label %{one}" for position, one in enumerate(labels[1:]))
                self._line(f"switch i32 {selector}, label %{labels[0]} [ {cases} ]")
            for edge, label in zip(block.edges, labels, strict=True):
                if not label.startswith("b"):
                    self.lines.append(f"{label}:")
                    known = dict(self._values)
                    self._leave(block, edge)
                    self._values = known
            return
        self.lines += self._flushed(block.live_out)
        self._leave(block, block.edges[0])

    def _target(self, block: Block, edge: Edge) -> str:
        """The label to branch to for an edge: its target's, or one of its own where it has something to do."""
        if edge.operands or (block.index, edge.target) in self.layout.loops.bodies:
            return f"e{self._next()}"
        return f"b{edge.target}"

    def _leave(self, block: Block, edge: Edge) -> None:
        """Writes an edge's copies and its branch; the homes are up to date."""
        live = self.analysis.blocks[edge.target].live_in
        copies: list[tuple[str, str]] = []
        for number, origin in edge.refs.items():
            if live & self.analysis.ref_bit(number):
                copies.append((f"r{number}", "0" if origin is None else self._read(("r", origin))))
        types: dict[int, str] | None = None
        for slot, source in edge.values.items():
            if not live >> slot & 1:
                continue
            if self.layout.is_raw:
                copies.append((f"s{slot}", self._read_name(f"s{source}").text))
                continue
            if types is None:
                types = self.analysis.types_before(block, block.end)
            kind = types[source]
            if kind not in "JG":
                copies.append((f"{kind}{slot}", self._read((kind, source))))
        for name, text in copies:
            self._homed.add(name)
            self._line(f"store {TYPES[name[0]]} {text}, ptr %h_{name}")
        target = self.analysis.blocks[edge.target]
        if (block.index, target.index) in self.layout.loops.bodies:
            n = self._next()
            self._line(f"%{n}y = load i64, ptr %context")
            self._line(f"%{n}z = sub i64 %{n}y, {self.layout.loop_cost(block.index, target.index)}")
            self._line(f"store i64 %{n}z, ptr %context")
            self._line(f"%{n}c = icmp slt i64 %{n}z, 0")
            label = self._stub((), (target.start + 1) | OUT_OF_FUEL)
            self._line(f"br i1 %{n}c, label %{label}, label %b{target.index}")
        else:
            self._line(f"br label %b{target.index}")


def _literal(instruction: Instruction, kind: str) -> str:
    """The constant of an instruction."""
    value = cast("int | float", 0 if instruction.operation.mnemonic.endswith(".zero") else instruction.values[0])
    if kind == "f":
        return f"bitcast (i32 {bitcast_f32_i32(float(value))} to float)"
    if kind == "F":
        return f"bitcast (i64 {bitcast_f64_i64(float(value))} to double)"
    return str(int(value))
