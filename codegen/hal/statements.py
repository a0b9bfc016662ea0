"""Writes the instructions of blocks as statements; a value that is used once becomes part of its use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ...base.terminal import printable
from ...vm.translation.expressions import (
    NONE,
    ONE,
    ZERO,
    Attribute,
    Binary,
    Comparison,
    Conditional,
    Display,
    Expression,
    Item,
    Literal,
    Logical,
    Name,
    call,
)
from ...vm.translation.operations import OPERATIONS
from ...vm.translation.ranges import FULL
from ..program.folding import is_pure
from ..program.ir import Block, Constant, Edge, Function, Instruction, Rodata, Value, Variable
from .calls import ALLOCATOR, DEVICE, CallWriter
from .expressions import Term, constant, expression
from .lines import PASS, Node, PythonComment, Statement, Suite, has_statements
from .module import Module
from .names import annotation

_LONG: Final = 70  # a longer value becomes a separate statement
_LETTERS: Final = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}
# Calls that may move to the use of their result: they have no effect, and their result never changes.
_MOVABLE: Final = frozenset(
    {
        "hal.device.query.i64",
        "hal.executable.lookup.function",
        "hal.ex.file.from_memory",
    }
)


class StatementWriter:
    """Writes the blocks of one function.

    Attributes:
        body: all statements.
        indent: the level of the next statement.
    """

    def __init__(self, module: Module, function: Function, counters: dict[Variable, Value]) -> None:
        self.module = module
        self.function = function
        self.counters = counters
        self.calls: CallWriter = CallWriter(module, function, self.term_of)
        self.body: list[Node] = []
        self.open: list[list[Node]] = [self.body]  # the suites around the next statement, innermost last
        self.indent: int = 0
        self._atoms = 0
        # Pending values, with all variables that they read.
        self._pending: dict[Variable, tuple[Instruction, Term, frozenset[Variable]]] = {}
        self._read: set[Variable] = set()  # read by the current expression
        self._written: set[Variable] = set()
        self._same: dict[Variable, Term] = {}  # values that never change
        self._location: str | None = None
        self._bounds: dict[Variable, tuple[int, int] | None] = {}

    # -- statements ----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Adds a statement without an expression."""
        self.open[-1].append(Statement(text))

    def statement(self, start: str, tree: Expression) -> None:
        """Adds a statement that ends with an expression."""
        self.open[-1].append(Statement(start, tree))

    @contextmanager
    def suite(self, header: str, test: Expression | None = None) -> Iterator[None]:
        """Adds a header, which may end with a condition; lines written inside go under it."""
        statement = Statement(header) if test is None else Statement(header, test, ":")
        body: list[Node] = []
        self.open[-1].append(Suite(statement, body))
        self.open.append(body)
        self.indent += 1
        yield
        if not has_statements(body):
            body.append(PASS)
        self.open.pop()
        self.indent -= 1

    def locate(self, location: str | None) -> None:
        """Adds a comment with a source location, if it differs from the previous location."""
        if location is not None and location != self._location:
            self.open[-1].append(PythonComment(printable(location)))
        if location is not None:
            self._location = location

    # -- values --------------------------------------------------------------------------------------

    def term_of(self, value: Value) -> Term:
        """Returns a value as an operand; uses its pending expression, if any."""
        if isinstance(value, Constant):
            return constant(value)
        if isinstance(value, Rodata):
            return Term(self.module.data.item(value.ordinal))
        if value.type == "hal.device":
            return Term(DEVICE)
        if value.type == "hal.allocator":
            return Term(ALLOCATOR)
        if value in self._same:
            return self._same[value]
        waiting = self._pending.pop(value, None)
        if waiting is not None:
            self._read |= waiting[2]
            return waiting[1]
        self._read.add(value)
        bounds = self._bounds.get(value)
        if value in self.counters:
            bounds = (0, FULL[value.kind][1])
        return Term(Name(value.name), bounds or FULL.get(value.kind))

    def flush(self, keep: Sequence[Value] = ()) -> None:
        """Stores all pending values."""
        for variable in list(self._pending):
            if variable not in keep:
                self._store(variable)

    def _store(self, variable: Variable) -> None:
        instruction, term, _ = self._pending.pop(variable)
        self.locate(instruction.location)
        self._assign(variable, term)

    def _assign(self, variable: Variable, term: Term) -> None:
        if variable.definitions == 1:
            self._bounds[variable] = term.bounds
        note = ""
        if variable.definitions > 1 and term.tree == NONE and variable not in self._written:
            note = f": {annotation('r', variable.type, optional=True)}"
        if term.tree == Binary("+", Name(variable.name), ONE):
            self.line(f"{variable.name} += 1")
        else:
            self.statement(f"{variable.name}{note} = ", term.number())
        self._written.add(variable)

    # -- blocks --------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Writes a block without its terminator.

        Values may stay pending for the terminator; ``flush`` stores the others.
        """
        instructions = block.instructions[:-1]
        for at, instruction in enumerate(instructions):
            self._read = set()
            term = self._term(instruction, block, at)
            if term is None:
                continue
            if self._is_same(instruction):
                self._same[instruction.results[0]] = term
                continue
            if self._may_wait(instruction, block, at) and (
                instruction.operation == "call" or len(term.tree.python()) <= _LONG
            ):
                self._pending[instruction.results[0]] = (instruction, term, frozenset(self._read))
                continue
            self._before(instruction)
            self.locate(instruction.location)
            if not instruction.results or not any(variable.uses for variable in instruction.results):
                self.statement("", term.tree)
            elif len(instruction.results) == 1:
                self._assign(instruction.results[0], term)
            else:
                self._written.update(instruction.results)
                self.statement(f"{', '.join(variable.name for variable in instruction.results)} = ", term.tree)

    def _before(self, instruction: Instruction) -> None:
        """Stores pending values that read a variable or a global changed by an instruction."""
        stores = instruction.operation.startswith("global.store") or isinstance(instruction.callee, int)
        for variable, (waiting, _, reads) in list(self._pending.items()):
            if not reads.isdisjoint(instruction.results) or (stores and waiting.operation.startswith("global.load")):
                self._store(variable)

    def _is_same(self, instruction: Instruction) -> bool:
        """Whether a value is an attribute of an argument or of the program that never changes."""
        if len(instruction.results) != 1 or instruction.results[0].definitions != 1:
            return False
        if instruction.operation == "global.load.ref":
            return instruction.ordinal not in self.module.attributes.changed
        view = instruction.operands[0] if instruction.callee == "hal.buffer_view.buffer" else None
        return isinstance(view, Variable) and view.definitions == 1

    def _may_wait(self, instruction: Instruction, block: Block, at: int) -> bool:
        """Whether a value has a single use, later in its block, to which it may move."""
        if len(instruction.results) != 1:
            return False
        variable = instruction.results[0]
        if variable.definitions != 1 or variable.uses != 1:
            return False
        if instruction.callee in _MOVABLE:
            movable = True
        elif instruction.operation == "call" and block.instructions[at + 1].operation.startswith("global.store."):
            return block.instructions[at + 1].operands[-1] is variable
        else:
            movable = instruction.operation != "assign" and instruction.operation != "call" and is_pure(instruction)
        if not movable:
            return False
        later = block.instructions[at + 1 :]
        used = any(value is variable for user in later for value in user.values())
        return used or any(source is variable for edge in block.edges for _, source in edge.copies)

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge."""
        pairs = [(target, self.term_of(source)) for target, source in edge.copies if target.type != "hal.device"]
        targets = {target for target, _ in pairs}
        sources = {source for _, source in edge.copies if isinstance(source, Variable)}
        if len(pairs) > 1 and targets & sources:
            left = ", ".join(target.name for target, _ in pairs)
            self.line(f"{left} = {', '.join(term.number().python() for _, term in pairs)}")
            self._written |= targets
            return
        for target, term in pairs:
            self._assign(target, term)

    # -- instructions --------------------------------------------------------------------------------

    def _term(self, instruction: Instruction, block: Block, at: int) -> Term | None:
        """Returns an instruction's value or effect; ``None`` if there is nothing to write."""
        operation = instruction.operation
        bounds = FULL.get(instruction.results[0].kind) if instruction.results else None
        if operation == "call":
            tree = self.calls.call(instruction)
            return self._query(instruction, tree) if instruction.callee == "hal.device.query.i64" else Term(tree)
        if operation == "release":
            self._release(instruction, block, at)
            return None
        if operation.startswith("global."):
            return self._global(instruction)
        if operation.startswith(("list.", "buffer.")):
            return Term(self._host(instruction), bounds)
        operands = [self.term_of(self._value(instruction, position)) for position in range(len(instruction.operands))]
        if operation == "assign":
            return operands[0]
        if operation.startswith("select."):
            test, yes, no = operands
            return Term(Conditional(test.tree, yes.number(), no.number()), bounds)
        if operation == "cast.any.ref":
            kind = annotation("r", instruction.type).partition("[")[0]
            is_host = kind in ("list", "memoryview")
            return Term(call("cast", operands[0].number(), Name(kind))) if is_host else operands[0]
        if operation.startswith("switch."):
            index, default, *values = (operand.number() for operand in operands)
            is_inside = Comparison("in", index, call("range", Literal(len(values))))
            return Term(Conditional(is_inside, Item(Display(tuple(values)), index), default), bounds)
        if OPERATIONS[operation].atomic:
            operands = [self._atom(operand) for operand in operands]
        return expression(instruction, operands, self.counters)

    def _atom(self, term: Term) -> Term:
        """Returns a value that may be repeated."""
        if isinstance(term.tree, Name | Literal | Attribute):
            return term
        name = f"t{self._atoms}"
        self._atoms += 1
        self.statement(f"{name} = ", term.number())
        return Term(Name(name), term.bounds)

    def _value(self, instruction: Instruction, at: int) -> Value:
        value = instruction.operands[at]
        assert not isinstance(value, tuple)
        return value

    def _query(self, instruction: Instruction, asked: Expression) -> Term:
        """Returns a device's answer: two results, or only the second if the device always answers."""
        known, answer = instruction.results
        if known.uses:
            return Term(call("answer_of", asked))
        instruction.results = (answer,)
        return Term(Logical("or", asked, ZERO), FULL["I"], truth=asked)

    def _release(self, instruction: Instruction, block: Block, at: int) -> None:
        """Writes a ``del`` of a buffer after its last use."""
        buffer = self._value(instruction, 0)
        if not isinstance(buffer, Variable) or buffer.definitions != 1 or buffer in self.function.arguments:
            return
        uses = sum(value is buffer for user in block.instructions[: at + 1] for value in user.values())
        if uses == buffer.uses:
            for variable, (_, _, reads) in list(self._pending.items()):
                if buffer in reads:
                    self._store(variable)
            self.locate(instruction.location)
            self.line(f"del {buffer.name}")

    def _global(self, instruction: Instruction) -> Term | None:
        parts = instruction.operation.split(".")
        kind = parts[-1]
        if "indirect" in parts:
            raise self.calls.refused(instruction)
        if kind == "ref":
            name = self.module.attributes.names.get(instruction.ordinal)
            if name is None:  # the device
                return None
        else:
            name = self.module.attributes.number(
                {"i32": "i", "i64": "I", "f32": "f", "f64": "F"}[kind], instruction.ordinal
            )
        if parts[1] == "load":
            return Term(Attribute(Name("self"), name), FULL.get(instruction.results[0].kind))
        value = self.term_of(self._value(instruction, 0))
        self._before(instruction)
        self.locate(instruction.location)
        self.statement(f"self.{name} = ", value.number())
        return None

    # -- buffers and lists on the host ---------------------------------------------------------------

    def _host(self, instruction: Instruction) -> Expression:
        """Returns an operation on a host buffer or a list."""
        operands = [
            self.term_of(self._value(instruction, position)).number() for position in range(len(instruction.operands))
        ]
        noun, verb, *kind = instruction.operation.split(".")
        if noun == "list":
            if verb == "alloc":
                return Display(is_list=True)
            if verb in ("reserve", "size"):
                return call("len", operands[0])
            if verb == "resize":
                return call("resize", *operands, self._zero(instruction))
            return call("get" if verb == "get" else "put", *operands)
        match verb:
            case "length":
                return Attribute(operands[0], "nbytes")
            case "load" | "store" | "fill":
                letter = _LETTERS[kind[0]]
                return call(verb, Literal(letter.upper() if kind[-1] == "u" else letter), *operands)
            case "alloc" | "clone":  # host memory has sufficient alignment for any type
                return call("new_bytes" if verb == "alloc" else "clone_bytes", *operands[:-1])
            case "copy" | "compare":
                return call(f"{verb}_bytes", *operands)
        raise self.calls.refused(instruction)

    def _zero(self, instruction: Instruction) -> Expression:
        """Returns the default element with which a list grows."""
        items = instruction.operands[0]
        kind = (items.type or "") if isinstance(items, Variable) else ""
        inner = kind.partition("<")[2].rstrip(">")
        return Literal(0.0) if inner.startswith("f") else ZERO if inner.startswith("i") else NONE
