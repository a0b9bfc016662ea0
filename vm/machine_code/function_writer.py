"""Writes one function as LLVM IR.

The function is ``i32 f(ptr context, ptr frame, i32 entry)``. Entry 0 is its start, entry n the position after
instruction n - 1, which is the marker of a loop's header. It returns 0 if it has ended. If a guard failed or the fuel
is spent, it returns the number of frames to be continued elsewhere: its own and those after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from ..bytecode.decoder import Instruction, field_value
from ..bytecode.isa import FieldKind
from ..translation.basic_block import Block, Edge, Variable
from .homes import TYPES, HomeWriter, Value, literal
from .layout import Layout, callee_of, is_known
from .operations import TEMPLATES

_ZEROS: Final = {"i": "0", "I": "0", "f": "0.0", "F": "0.0", "r": "0"}
_BANKS: Final = {"i32": "i32", "i64": "i64", "f32": "float", "f64": "double"}
OUT_OF_FUEL: Final = 1 << 32  # a flag beside the entry in word 0 of a frame that was left
# Words of the context. The last three count down, and code exits before they become negative.
GLOBALS, TABLE, REFERENCES = 1, 2, 3  # addresses: of globals, of descriptors, of the ordinals of reference globals
FUEL: Final = 0  # the rough number of additions that are left
BUDGET: Final = 4  # the bytes of the host's stack that are left
ROOM: Final = 5  # the frames of the VM's stack that are left


@dataclass(frozen=True)
class Unit:
    """The state that the functions of one unit share.

    Attributes:
        layouts: the layout of each function, by ordinal.
        closed: the functions that may be called.
        deep: the closed functions whose calls need a frame of the VM's stack.
        rodata: the reference of each rodata segment that is used.
        references: the position in the context's array of each reference global that is used.
        types: the bit of each reference type that is checked.
        global_bytes: the bytes of the module's globals, a multiple of 8.
    """

    layouts: Mapping[int, Layout]
    closed: frozenset[int]
    deep: frozenset[int]
    rodata: Mapping[int, int]
    references: Mapping[int, int]
    types: Mapping[int, int]
    global_bytes: int


class FunctionWriter(HomeWriter):
    """Writes one function of a unit."""

    def __init__(self, unit: Unit, ordinal: int) -> None:
        super().__init__(unit.layouts[ordinal])
        self.unit = unit
        self.ordinal = ordinal
        self._context: set[str] = set()  # words of the context that the code uses

    # -- the function --------------------------------------------------------------------------------

    def write(self, linkage: str) -> list[str]:
        """Returns the lines of the function."""
        analysis, layout = self.analysis, self.layout
        for block in analysis.blocks:
            if block.index in layout.loops.reachable:
                self._block(block)
        self.lines: list[str]
        body, self.lines = self.lines, []
        arguments = {f"{kind}{number}" for kind, number in analysis.arguments}
        live = analysis.blocks[0].live_in
        zeroed = [
            name
            for name in layout.homes
            if name in self.homed and name not in arguments and analysis.mask([(name[0], int(name[1:]))]) & live
        ]
        self.lines += [
            f"define {linkage}i32 @f{self.ordinal}(ptr noalias %context, ptr noalias %frame, i32 %entry) nounwind {{",
            "start:",
        ]
        for word, name in ((GLOBALS, "globals"), (TABLE, "table"), (REFERENCES, "references")):
            if name in self._context:
                self.line(f"%p_{name} = getelementptr i64, ptr %context, i64 {word}")
                self.line(f"%{name} = load ptr, ptr %p_{name}, !invariant.load !0")
        for name in sorted(self.homed | arguments, key=layout.homes.__getitem__):
            self.line(f"%h_{name} = {self.address(layout.homes[name])}")
        entries = " ".join(
            f"i32 {analysis.blocks[index].start + 1}, label %b{index}" for index in sorted(layout.loops.headers)
        )
        self.lines += [f"  switch i32 %entry, label %begin [ {entries} ]", "begin:"]
        self.lines += [f"  store {TYPES[name[0]]} {_ZEROS[name[0]]}, ptr %h_{name}" for name in zeroed]
        self.lines.append("  br label %b0")
        self.lines += body
        self.lines += self.stubs
        self.lines.append("}")
        return self.lines

    # -- blocks --------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        self.begin()
        self.lines.append(f"b{block.index}:")
        for index in range(block.start + 1, block.end):
            if not self._is_native(self.analysis.instructions[index]):
                self.guard("true", block, index)
                self.line("unreachable")
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
                self.condition(read_variable) if template.takes_bit and not position else self.read(read_variable)
                for position, read_variable in enumerate(operands.reads)
            ]
            n = self.fresh()
            if "%table" in template.guard:
                self._context.add("table")
            if template.guard:
                self.line(template.guard.format(*texts, n=n))
                self.guard(f"%{n}bad", block, index)
            self.line(template.text.format(*texts, n=n, r=f"%{n}r"))
            if operands.writes:
                self.assign(operands.writes[0], Value(f"%{n}r", template.is_bit))
        elif callee_of(instruction) is not None:
            self._call(block, index)
            return
        elif mnemonic.startswith("const.") and "ref" not in mnemonic:
            variable = operands.writes[0]
            if variable not in self.analysis.constants:
                self.assign(variable, Value(literal(instruction, variable[0])))
        elif mnemonic.startswith("switch."):
            self._switch(operands.reads, operands.writes[0])
        elif mnemonic.startswith("global.") and not mnemonic.endswith(".ref"):
            self._global(block, index, instruction)
        elif mnemonic != "discard.refs":
            self.assign(operands.writes[0], Value(self._reference(block, index, instruction)))
        self._null(operands.moves, operands.writes)

    def _null(self, moves: Iterable[int], written: Iterable[Variable]) -> None:
        for number in moves:
            if ("r", number) not in written:
                self.assign(("r", number), Value("0"))

    def _switch(self, reads: tuple[Variable, ...], result: Variable) -> None:
        at, text, *values = (self.read(variable) for variable in reads)
        t = TYPES[result[0]]
        for position, value in enumerate(values):
            n = self.fresh()
            self.line(f"%{n}c = icmp eq i32 {at}, {position}")
            self.line(f"%{n} = select i1 %{n}c, {t} {value}, {t} {text}")
            text = f"%{n}"
        self.assign(result, Value(text))

    def _global(self, block: Block, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        parts = instruction.operation.mnemonic.split(".")
        t, size = _BANKS[parts[-1]], 8 if parts[-1].endswith("64") else 4
        n = self.fresh()
        self._context.add("globals")
        offset = str(instruction.values[0])
        if "indirect" in parts:
            offset = self.read(operands.reads[0])
            self.line(f"%{n}o = zext i32 {offset} to i64")
            self.line(f"%{n}f = icmp uge i64 %{n}o, {self.unit.global_bytes}")
            self.line(f"%{n}e = and i32 {offset}, {size - 1}")
            self.line(f"%{n}m = icmp ne i32 %{n}e, 0")
            self.line(f"%{n}b = or i1 %{n}f, %{n}m")
            self.guard(f"%{n}b", block, index)
            offset = f"%{n}o"
        self.line(f"%{n}a = getelementptr i8, ptr %globals, i64 {offset}")
        if parts[1] == "load":
            self.line(f"%{n}v = load {t}, ptr %{n}a")
            self.assign(operands.writes[0], Value(f"%{n}v"))
        else:
            self.line(f"store {t} {self.read(operands.reads[-1])}, ptr %{n}a")

    def _reference(self, block: Block, index: int, instruction: Instruction) -> str:
        """Returns the lines of a result that is a reference."""
        reads = self.analysis.operands[index].reads
        n = self.fresh()
        match instruction.operation.mnemonic:
            case "const.ref.zero":
                return "0"
            case "const.ref.rodata":
                return str(self.unit.rodata[cast(int, instruction.values[0])])
            case "assign.ref":
                return self.read(reads[0])
            case "cast.any.ref":
                text = self.read(reads[0])
            case "select.ref":
                condition = self.condition(reads[0])
                yes, no = self.read(reads[1]), self.read(reads[2])
                self.line(f"%{n}s = select i1 {condition}, i64 {yes}, i64 {no}")
                text = f"%{n}s"
            case _:  # global.load.ref
                self._context.add("references")
                offset = self.unit.references[cast(int, instruction.values[0])]
                self.line(f"%{n}g = getelementptr i64, ptr %references, i64 {offset}")
                self.line(f"%{n}s = load i64, ptr %{n}g")
                text = f"%{n}s"
        bit = self.unit.types[cast(int, field_value(instruction, FieldKind.TYPE))]
        self._context.add("table")
        self.line(f"%{n}h = shl i64 {text}, 2")
        self.line(f"%{n}o = or i64 %{n}h, 3")
        self.line(f"%{n}p = getelementptr i64, ptr %table, i64 %{n}o")
        self.line(f"%{n}m = load i64, ptr %{n}p, !invariant.load !0")
        self.line(f"%{n}k = and i64 %{n}m, {1 << bit}")
        self.line(f"%{n}b = icmp eq i64 %{n}k, 0")
        self.guard(f"%{n}b", block, index)
        return text

    # -- calls ---------------------------------------------------------------------------------------

    def _passed(self, index: int) -> list[str]:
        """Returns the operands of a call or a return."""
        passed = self.analysis.operands[index].passed
        return ["0" if variable is None else self.read(variable) for variable in passed]

    def _call(self, block: Block, index: int) -> None:
        instruction = self.analysis.instructions[index]
        operands = self.analysis.operands[index]
        ordinal = callee_of(instruction)
        assert ordinal is not None
        callee = self.unit.layouts[ordinal]
        base = self.layout.size
        spent = {  # words of the context, and the amounts that a call uses
            FUEL: f"{callee.cost}",
            BUDGET: f"STACK_{ordinal}",
        }
        if ordinal in self.unit.deep:
            spent[ROOM] = "1"
        n = self.fresh()
        bad = ""
        for word, count in spent.items():
            self.line(f"%{n}a{word} = getelementptr i64, ptr %context, i64 {word}")
            self.line(f"%{n}b{word} = load i64, ptr %{n}a{word}")
            self.line(f"%{n}c{word} = sub i64 %{n}b{word}, {count}")
            if word == FUEL:
                self.line(f"store i64 %{n}c{word}, ptr %{n}a{word}")
            self.line(f"%{n}n{word} = icmp slt i64 %{n}c{word}, 0")
            if bad:
                self.line(f"%{n}o{word} = or i1 {bad}, %{n}n{word}")
            bad = f"%{n}o{word}" if bad else f"%{n}n{word}"
        self.guard(bad, block, index)
        for word in spent:
            if word != FUEL:
                self.line(f"store i64 %{n}c{word}, ptr %{n}a{word}")
        for (kind, number), text in zip(callee.analysis.arguments, self._passed(index), strict=True):
            word = self.layout.size + callee.homes[f"{kind}{number}"]
            self.line(f"%{n}p{kind}{number} = {self.address(word)}")
            self.line(f"store {TYPES[kind]} {text}, ptr %{n}p{kind}{number}")
        self.line(f"%{n}f = {self.address(base)}")
        self.line(f"%{n}d = call i32 @f{ordinal}(ptr %context, ptr %{n}f, i32 0)")
        self.line(f"%{n}c = icmp ne i32 %{n}d, 0")
        live = self.analysis.live_in_frame(index)
        lines = [f"  %{n}s = add i32 %{n}d, 1", *self.flushed(live)]
        label = self.stub(lines, index + 1, f"%{n}s")
        self.line(f"br i1 %{n}c, label %{label}, label %{n}o")
        self.lines.append(f"{n}o:")
        for word in spent:
            if word != FUEL:
                self.line(f"store i64 %{n}b{word}, ptr %{n}a{word}")
        self._null(operands.moves, operands.writes)
        for position, variable in enumerate(operands.writes):
            t = TYPES[variable[0]]
            self.line(f"%{n}p{position} = {self.address(base + 1 + position)}")
            self.line(f"%{n}r{position} = load {t}, ptr %{n}p{position}")
            self.assign(variable, Value(f"%{n}r{position}"))

    # -- terminators ---------------------------------------------------------------------------------

    def _terminator(self, block: Block, index: int) -> None:
        instruction = self.analysis.instructions[index]
        mnemonic = instruction.operation.mnemonic
        reads = self.analysis.operands[index].reads
        if mnemonic == "return":
            n = self.fresh()
            texts = self._passed(index)
            for position, ((kind, _), text) in enumerate(zip(reads, texts, strict=True)):
                self.line(f"%{n}p{position} = {self.address(1 + position)}")
                self.line(f"store {TYPES[kind]} {text}, ptr %{n}p{position}")
            self.line("ret i32 0")
            return
        if mnemonic == "fail":
            self.guard(self.condition(reads[0]) if block.edges else "true", block, index)
            if not block.edges:
                self.line("unreachable")
                return
        elif callee_of(instruction) is not None:
            self._call(block, index)
        if mnemonic in ("cond_br", "br_table"):
            selector = self.condition(reads[0]) if mnemonic == "cond_br" else self.read(reads[0])
            self.lines += self.flushed(block.live_out)
            labels = [self._target(block, edge) for edge in block.edges]
            if mnemonic == "cond_br":
                self.line(f"br i1 {selector}, label %{labels[0]}, label %{labels[1]}")
            else:
                cases = " ".join(
                    f"i32 {position}, label %{target_label}" for position, target_label in enumerate(labels[1:])
                )
                self.line(f"switch i32 {selector}, label %{labels[0]} [ {cases} ]")
            for edge, label in zip(block.edges, labels, strict=True):
                if not label.startswith("b"):
                    self.lines.append(f"{label}:")
                    known = dict(self.values)
                    self._leave(block, edge)
                    self.values = known
            return
        self.lines += self.flushed(block.live_out)
        self._leave(block, block.edges[0])

    def _target(self, block: Block, edge: Edge) -> str:
        """Returns the branch label of an edge: the label of its target, or a label of the edge if it has copies."""
        if edge.operands or (block.index, edge.target) in self.layout.loops.bodies:
            return f"e{self.fresh()}"
        return f"b{edge.target}"

    def _leave(self, block: Block, edge: Edge) -> None:
        """Writes an edge's copies and its branch; the homes are up to date."""
        live = self.analysis.blocks[edge.target].live_in
        copies: list[tuple[str, str]] = []
        for number, origin in edge.refs.items():
            if live & self.analysis.ref_bit(number):
                copies.append((f"r{number}", "0" if origin is None else self.read(("r", origin))))
        types: Mapping[int, str] | None = None
        for slot, source in edge.values.items():
            if not live >> slot & 1:
                continue
            if types is None:
                types = self.analysis.types_before(block, block.end)
            kind = types[source]
            if kind not in "JG":
                copies.append((f"{kind}{slot}", self.read((kind, source))))
        for name, text in copies:
            self.homed.add(name)
            self.line(f"store {TYPES[name[0]]} {text}, ptr %h_{name}")
        target = self.analysis.blocks[edge.target]
        if (block.index, target.index) in self.layout.loops.bodies:
            n = self.fresh()
            self.line(f"%{n}y = load i64, ptr %context")
            self.line(f"%{n}z = sub i64 %{n}y, {self.layout.loop_cost(block.index, target.index)}")
            self.line(f"store i64 %{n}z, ptr %context")
            self.line(f"%{n}c = icmp slt i64 %{n}z, 0")
            label = self.stub((), (target.start + 1) | OUT_OF_FUEL)
            self.line(f"br i1 %{n}c, label %{label}, label %b{target.index}")
        else:
            self.line(f"br label %b{target.index}")
