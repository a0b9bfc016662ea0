"""Reads a module as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from ...status import InvalidArgumentError, PumiceError, UnimplementedError, shorten
from ...vm.bytecode.archive import ModuleArchive
from ...vm.bytecode.calling_convention import Element, Repeated
from ...vm.bytecode.declaration import declaration_of
from ...vm.bytecode.decoder import Instruction as Decoded
from ...vm.bytecode.decoder import field_value, registers_of
from ...vm.bytecode.isa import CALLS, IMPORT_BIT, MOVE_BIT, REF_BIT, REF_MASK, FieldKind
from ...vm.bytecode.module_def import ModuleDef
from ...vm.bytecode.reader import read_module
from ...vm.bytecode.verifier import VerifiedModule, verify_module
from ...vm.translation.analysis import FunctionAnalysis
from ...vm.translation.basic_block import Block as RegisterBlock
from ...vm.translation.module_analysis import ModuleAnalysis
from .ir import NULL, Block, Constant, Edge, Function, Instruction, Operand, Program, Rodata, Value, Variable
from .naming import name_functions, name_variables
from .reference_types import find_types
from .simplify import remove_unused, simplify
from .webs import Node, Webs

INITIALIZERS = ("__init",)
_SKIPPED = frozenset({"block", "discard.refs", "trace", "print"})


def read_program(data: bytes, name: str, *, formats: Sequence[str] = ()) -> Program:
    """Reads the program of a module, simplified: constants folded, dead code removed.

    Args:
        data: the file's bytes.
        name: the file's name, for messages.
        formats: the executable formats that the device runs. If passed, queries about formats are answered here, so
            that the code that chooses a device disappears; otherwise the queries stay.

    Raises:
        InvalidArgumentError: the file is damaged.
        UnimplementedError: the module has an operation without generated code; the message says which and where.
    """
    with ModuleArchive.from_bytes(data, name) as archive:
        definition = read_module(archive)
        return program_of(definition, formats=formats)


def program_of(definition: ModuleDef, *, formats: Sequence[str] = ()) -> Program:
    """Returns the program of a module already read; see ``read_program``."""
    verified = verify_module(definition)
    analysis = ModuleAnalysis(verified)
    exports = {export.name: export.ordinal for export in definition.exports}
    initializers = [exports[name] for name in INITIALIZERS if name in exports]
    pending = [*initializers, *exports.values()]
    read: dict[int, Function] = {}
    while pending:
        ordinal = pending.pop()
        if ordinal not in read:
            function = read[ordinal] = _FunctionReader(verified, analysis, ordinal).read()
            pending += [call.callee for call in function.instructions() if isinstance(call.callee, int)]
    program = Program(
        definition.name,
        dict(sorted(read.items())),
        {name: read[ordinal] for name, ordinal in exports.items() if not name.startswith("__")},
        initializers,
        tuple(memoryview(bytes(segment)) for segment in definition.rodata),
        definition.global_bytes,
        {},
        (),
    )
    simplify(program, formats)
    remove_unused(program)
    find_types(program)
    devices = sum(kind == "hal.device" for kind in program.global_types.values())
    if devices > 1:
        raise UnimplementedError(
            f"module {definition.name} is compiled for more than one device; code is written for one: compile the "
            "program for one, or run it with pumice.Session(devices=[…])"
        )
    name_functions(program)
    for function in program.functions.values():
        name_variables(function)
    return program


def with_exports(definition: ModuleDef, names: Sequence[str]) -> ModuleDef:
    """Returns a module with only some of its exports, their asynchronous siblings, and the initializers.

    Raises:
        InvalidArgumentError: there is no such export; the message lists those that exist.
    """
    exports = [export.name for export in definition.exports if not export.name.startswith("__")]
    for name in names:
        if name not in exports:
            raise InvalidArgumentError(
                f"module {definition.name} exports no function {shorten(name)!r}; exported are: "
                f"{shorten(', '.join(exports)) or 'none'}"
            )
    wanted = {*names, *[f"{name}$async" for name in names], *INITIALIZERS}
    return replace(
        definition, exports=tuple(export_def for export_def in definition.exports if export_def.name in wanted)
    )


class _CertainFailures(FunctionAnalysis):
    """An analysis of a function without the edges after certain failures."""

    def _find_blocks(self) -> list[RegisterBlock]:
        blocks = super()._find_blocks()
        # For each block, the i32 slots that are nonzero at its start on all paths seen so far.
        known: dict[int, frozenset[int]] = {0: frozenset()}
        pending = [0]
        while pending:
            block = blocks[pending.pop()]
            slots = self._behind(block, known[block.index])
            terminator = self.instructions[block.end - 1].operation.mnemonic
            status = self.operands[block.end - 1].reads[0][1] if terminator in ("cond_br", "fail") else -1
            for position, edge in enumerate(block.edges):
                if terminator == "fail" and status in slots:
                    continue
                here = slots | {status} if terminator == "cond_br" and not position else slots
                there = _over(here, edge.values)
                before = known.get(edge.target)
                if before is None or not before <= there:
                    known[edge.target] = there if before is None else before & there
                    pending.append(edge.target)
        for block in blocks:
            fails = self.instructions[block.end - 1].operation.mnemonic == "fail" and block.index in known
            if fails and self.operands[block.end - 1].reads[0][1] in self._behind(block, known[block.index]):
                block.edges = []
        return blocks

    def _behind(self, block: RegisterBlock, slots: frozenset[int]) -> frozenset[int]:
        """Returns the slots that are not 0 at the end of a block."""
        known = set(slots)
        for index in range(block.start, block.end):
            for kind, number in self.operands[index].writes:
                if kind != "r":
                    known -= {number, number + 1} if kind in "IF" else {number}
            instruction = self.instructions[index]
            if instruction.operation.mnemonic == "const.i32" and instruction.values[0] != 0:
                known.add(self.operands[index].writes[0][1])
        return frozenset(known)


def _over(slots: frozenset[int], copies: Mapping[int, int]) -> frozenset[int]:
    """Returns the slots that are not 0 after the copies of an edge."""
    return frozenset(slots - copies.keys()) | {target for target, source in copies.items() if source in slots}


class _FunctionReader:
    """Reads one function."""

    def __init__(self, verified: VerifiedModule, module: ModuleAnalysis, ordinal: int) -> None:
        self.definition = verified.definition
        self.function = verified.functions[ordinal]
        self.analysis = _CertainFailures(self.function, module)
        self.webs = Webs(self.analysis)
        self.name = self.definition.function_name(ordinal)
        if self.analysis.register_types is None:
            raise UnimplementedError(
                f"function {self.name or ordinal} of module {self.definition.name} reads a register as another type "
                "than was written, which no compiler does; code is written for typed registers only"
            )

    def read(self) -> Function:
        webs, analysis = self.webs, self.analysis
        arguments = [webs.argument(register) for register in analysis.arguments]
        read: list[list[tuple[Decoded, list[Node | None], list[Node]]]] = []
        for block in analysis.blocks:
            read.append([self._nodes(index) for index in range(block.start, block.end)])
            webs.end()
        webs.join()
        starting = [webs.variable(node) for node in arguments]
        blocks = [self._block(block, nodes) for block, nodes in zip(analysis.blocks, read, strict=True)]
        for number, index, node in reversed(webs.nulls):
            # A reference that was moved away is read as null afterwards.
            written = blocks[number].instructions
            at = min(index - analysis.blocks[number].start + 1, len(written) - 1)
            written.insert(at, Instruction("assign", (NULL,), (webs.variable(node),)))
        for node in webs.zeros:
            variable = webs.variable(node)
            blocks[0].instructions.insert(0, Instruction("assign", (Constant(variable.kind),), (variable,)))
        for output in blocks:
            output.instructions = [
                instruction for instruction in output.instructions if instruction.operation not in _SKIPPED
            ]
        if any(edge.target == 0 for block in blocks for edge in block.edges):
            blocks = _with_start(blocks)
        signature = self.definition.signatures[self.function.ordinal]
        declaration = declaration_of(signature)
        if declaration is not None and not declaration.fits(self.function.signature):
            declaration = None
        return Function(
            self.function.ordinal,
            self.name or "",
            self.name is not None and not self.name.startswith("__"),
            declaration,
            starting,
            tuple(self.function.signature.results),
            blocks,
        )

    def _nodes(self, index: int) -> tuple[Decoded, list[Node | None], list[Node]]:
        """Returns an instruction with the nodes that it reads and writes; reading ``None`` means null."""
        instruction = self.analysis.instructions[index]
        operands = self.analysis.operands[index]
        reads: list[Node | None] = []
        gone: set[int] = set()
        listed = registers_of(instruction, FieldKind.OPERANDS)
        lists = len(listed) == len(operands.reads)
        for position, register in enumerate(operands.reads):
            null = register[0] == "r" and register[1] in gone
            node = self.webs.read(register)
            reads.append(None if null or node.null else node)
            if lists and listed[position] & REF_BIT and listed[position] & MOVE_BIT:
                gone.add(listed[position] & REF_MASK)
        for number in operands.moves:
            self.webs.move(number, index)
        return instruction, reads, [self.webs.write(register) for register in operands.writes]

    # -- instructions --------------------------------------------------------------------------------

    def _block(self, block: RegisterBlock, read: Sequence[tuple[Decoded, list[Node | None], list[Node]]]) -> Block:
        instructions = []
        edges = []
        for edge in block.edges:
            copies: list[tuple[Variable, Value]] = []
            for target, held in self.webs.copies.get(edge, ()):
                copies.append((self.webs.variable(target), NULL if held is None else self._value(held)))
            edges.append(Edge(edge.target, copies))
        for decoded, reads, writes in read:
            instructions.append(self._instruction(decoded, reads, writes))
        mnemonic = read[-1][0].operation.mnemonic
        if mnemonic.startswith("call"):  # a yieldable call
            instructions.append(Instruction("br"))
        elif mnemonic in ("yield", "break", "cond_break"):
            instructions[-1] = Instruction("br")
        return Block(instructions, edges)

    def _value(self, node: Node) -> Value:
        return NULL if node.null else self.webs.variable(node)

    def _instruction(self, decoded: Decoded, reads: Sequence[Node | None], writes: Sequence[Node]) -> Instruction:
        mnemonic = decoded.operation.mnemonic
        values: list[Value] = [NULL if node is None else self._value(node) for node in reads]
        made = Instruction(
            mnemonic,
            tuple(values),
            tuple(self.webs.variable(node) for node in writes),
            location=self._location(decoded.pc),
        )
        if mnemonic in CALLS:
            self._call(made, decoded, values)
        elif mnemonic.startswith("const."):
            self._constant(made, decoded)
        elif mnemonic == "assign.ref":
            made.operation = "assign"
        elif mnemonic == "import.resolved":
            imported = self.definition.imports[cast(int, decoded.values[0]) & ~IMPORT_BIT]
            made.operation = "assign"
            made.operands = (Constant("i", int(imported.name.startswith("hal."))),)
        elif mnemonic == "fail":
            made.text = str(decoded.values[1])
        ordinal = field_value(decoded, FieldKind.GLOBAL)
        if ordinal is not None:
            made.ordinal = cast(int, ordinal)
        kind = field_value(decoded, FieldKind.TYPE)
        if kind is not None:
            made.type = self.definition.types[cast(int, kind)].removeprefix("!")
        return made

    def _call(self, made: Instruction, decoded: Decoded, values: Sequence[Value]) -> None:
        made.operation = "call"
        ordinal = cast(int, decoded.values[0])
        if ordinal & IMPORT_BIT:
            made.callee = self.definition.imports[ordinal & ~IMPORT_BIT].name
        else:
            made.callee = ordinal
        made.operands = _grouped(
            self.analysis.callee(decoded).arguments, registers_of(decoded, FieldKind.SEGMENT_SIZES), values
        )

    def _constant(self, made: Instruction, decoded: Decoded) -> None:
        mnemonic = made.operation
        made.operation = "assign"
        if mnemonic == "const.ref.rodata":
            made.operands = (Rodata(cast(int, decoded.values[0])),)
        elif mnemonic.endswith(".zero"):
            made.operands = (Constant(made.results[0].kind, 0.0 if ".f" in mnemonic else 0),)
        else:
            made.operands = (Constant(made.results[0].kind, cast(float, decoded.values[0])),)

    def _location(self, pc: int) -> str | None:
        debug = self.definition.debug
        if debug is None:
            return None
        try:
            location = debug.location_of(self.name or self.function.ordinal, pc)
            return location if location is not None else debug.location_of(self.function.ordinal, pc)
        except PumiceError:
            return None


def _grouped(elements: Sequence[Element], sizes: Sequence[int], values: Sequence[Value]) -> tuple[Operand, ...]:
    """Groups a call's operands: the operands of a repeated argument become rows."""
    following = iter(values)
    operands: list[Operand] = []
    for position, element in enumerate(elements):
        if isinstance(element, Repeated):
            rows: list[Value | tuple[Value, ...]] = []
            for _ in range(sizes[position]):
                row = tuple(next(following) for _ in element.elements)
                rows.append(row[0] if len(row) == 1 else row)
            operands.append(tuple(rows))
        else:
            operands.append(next(following))
    return tuple(operands)


def _with_start(blocks: list[Block]) -> list[Block]:
    """Prepends an empty block, so that no branch leads to the first block."""
    for block in blocks:
        for edge in block.edges:
            edge.target += 1
    return [Block([Instruction("br")], [Edge(1)]), *blocks]
