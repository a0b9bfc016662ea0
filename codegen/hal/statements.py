"""Writes the instructions of blocks as statements; values that are used once become part of their use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ...base.terminal import printable
from ...vm.translation.operations import EXPRESSIONS
from ...vm.translation.ranges import FULL
from ..program.folding import is_pure
from ..program.ir import Block, Constant, Edge, Function, Instruction, Rodata, Value, Variable
from .calls import CallTexts
from .expressions import Text, constant, expression
from .lines import WIDTH, broken
from .module import Module
from .names import annotation

_LONG: Final = 70  # a longer value is a statement of its own
_ZEROS: Final = {"i": "0", "I": "0", "f": "0.0", "F": "0.0"}
_LETTERS: Final = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}
# Calls that may move to where their result is used: they have no effect, and nothing changes their result.
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
        lines: without the indentation of the function's body.
        indent: the level of the next line.
    """

    def __init__(self, module: Module, function: Function, counters: dict[Variable, Value]) -> None:
        self.module = module
        self.function = function
        self.counters = counters
        self.calls = CallTexts(module, function, self.text_of)
        self.lines: list[str] = []
        self.indent = 0
        # Values that wait for their use, with all variables that they read.
        self._pending: dict[Variable, tuple[Instruction, Text, frozenset[Variable]]] = {}
        self._read: set[Variable] = set()  # by the text that is being made
        self._same: dict[Variable, Text] = {}  # values that are the same wherever they are read
        self._location: str | None = None
        self._bounds: dict[Variable, tuple[int, int] | None] = {}

    # -- lines ---------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Adds a statement, broken where it is too long."""
        self.lines += broken("    " * self.indent, text)

    def raised(self, status: str, message: str) -> None:
        """Adds a ``raise`` of a failure with a status and the literal of a message, broken where it is long."""
        indent = "    " * self.indent
        call = "raise failure"
        if len(indent) + len(call) + len(status) + len(message) < WIDTH - 4:
            self.line(f"{call}({status}, {message})")
            return
        parts = []
        quote, rest = message[0], message[1:-1]
        width = WIDTH - len(indent) - 7
        while rest:
            end = len(rest)
            if end > width:
                end = rest.rfind(" ", 0, width) + 1 or width
                end -= rest[:end].endswith("\\")
            parts.append(f"{indent}    {quote}{rest[:end]}{quote}")
            rest = rest[end:]
        parts[-1] += ","
        self.lines += [f"{indent}{call}(", f"{indent}    {status},", *parts, f"{indent})"]

    @contextmanager
    def suite(self, header: str) -> Iterator[None]:
        """Adds a header and indents what is written inside; an empty suite becomes ``pass``."""
        self.line(header)
        count = len(self.lines)
        self.indent += 1
        yield
        if not any(not line.lstrip().startswith("#") for line in self.lines[count:]):
            self.line("pass")
        self.indent -= 1

    def locate(self, location: str | None) -> None:
        """Adds a comment with a place in the source program, if it is another one than before."""
        if location is not None and location != self._location:
            self.line(f"# {printable(location)}"[:WIDTH])
        if location is not None:
            self._location = location

    # -- values --------------------------------------------------------------------------------------

    def text_of(self, value: Value) -> Text:
        """A value as an operand; takes what waits for its use."""
        if isinstance(value, Constant):
            return constant(value)
        if isinstance(value, Rodata):
            return Text(self.module.data.text(value.ordinal))
        if value.type == "hal.device":
            return Text("self.device")
        if value.type == "hal.allocator":
            return Text("self.context.allocator")
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
        return Text(value.name, bounds=bounds or FULL.get(value.kind))

    def flush(self, keep: Sequence[Value] = ()) -> None:
        """Stores all values that wait for their use."""
        for variable in list(self._pending):
            if variable not in keep:
                self._store(variable)

    def _store(self, variable: Variable) -> None:
        one, text, _ = self._pending.pop(variable)
        self.locate(one.location)
        self._assign(variable, text)

    def _assign(self, variable: Variable, text: Text) -> None:
        if variable.definitions == 1:
            self._bounds[variable] = text.bounds
        if text.text == f"{variable.name} + 1":
            self.line(f"{variable.name} += 1")
        elif variable.definitions > 1 and text.text == "None":
            note = annotation("r", variable.type, optional=True)
            self.line(f"{variable.name}: {note} = None" if self._first(variable) else f"{variable.name} = None")
        else:
            self.line(f"{variable.name} = {text.number()}")

    def _first(self, variable: Variable) -> bool:
        """Whether a variable has not been written before, in the order of the text."""
        names = (f"{variable.name} = ", f"{variable.name}: ")
        return variable not in self.function.arguments and not any(
            line.lstrip().startswith(names) for line in self.lines
        )

    # -- blocks --------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Writes a block without its terminator. Values may wait for the terminator; ``flush`` stores others."""
        instructions = block.instructions[:-1]
        for at, one in enumerate(instructions):
            self._read = set()
            text = self._text(one, block, at)
            if text is None:
                continue
            if self._is_same(one):
                self._same[one.results[0]] = text
                continue
            if self._may_wait(one, block, at) and (len(text.text) <= _LONG or one.operation == "call"):
                self._pending[one.results[0]] = (one, text, frozenset(self._read))
                continue
            self._before(one)
            self.locate(one.location)
            if not one.results or not any(variable.uses for variable in one.results):
                self.line(text.text)
            elif len(one.results) == 1:
                self._assign(one.results[0], text)
            else:
                self.line(f"{', '.join(variable.name for variable in one.results)} = {text.text}")

    def _before(self, one: Instruction) -> None:
        """Stores values that read what an instruction defines, and globals that it may store or a callee does."""
        stores = one.operation.startswith("global.store") or isinstance(one.callee, int)
        for variable, (waiting, _, reads) in list(self._pending.items()):
            if not reads.isdisjoint(one.results) or (stores and waiting.operation.startswith("global.load")):
                self._store(variable)

    def _is_same(self, one: Instruction) -> bool:
        """Whether a value is an attribute that nothing changes: of an argument, or of the program."""
        if len(one.results) != 1 or one.results[0].definitions != 1:
            return False
        if one.operation == "global.load.ref":
            return one.ordinal not in self.module.attributes.changed
        view = one.operands[0] if one.callee == "hal.buffer_view.buffer" else None
        return isinstance(view, Variable) and view.definitions == 1

    def _may_wait(self, one: Instruction, block: Block, at: int) -> bool:
        """Whether a value may move to its use, which is the only one, and in the same block behind it."""
        if len(one.results) != 1:
            return False
        variable = one.results[0]
        if variable.definitions != 1 or variable.uses != 1:
            return False
        if one.callee in _MOVABLE:
            movable = True
        elif one.operation == "call" and block.instructions[at + 1].operation.startswith("global.store."):
            return block.instructions[at + 1].operands[-1] is variable
        else:
            movable = one.operation != "assign" and one.operation != "call" and is_pure(one)
        if not movable:
            return False
        later = block.instructions[at + 1 :]
        used = any(value is variable for each in later for value in each.values())
        return used or any(source is variable for edge in block.edges for _, source in edge.copies)

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge."""
        pairs = [(target, self.text_of(source)) for target, source in edge.copies if target.type != "hal.device"]
        targets = {target for target, _ in pairs}
        sources = {source for _, source in edge.copies if isinstance(source, Variable)}
        if len(pairs) > 1 and targets & sources:
            left = ", ".join(target.name for target, _ in pairs)
            self.line(f"{left} = {', '.join(text.number() for _, text in pairs)}")
            return
        for target, text in pairs:
            self._assign(target, text)

    # -- instructions --------------------------------------------------------------------------------

    def _text(self, one: Instruction, block: Block, at: int) -> Text | None:
        """What an instruction computes or does; ``None`` if it does nothing here."""
        operation = one.operation
        if operation == "call":
            text = self.calls.call(one)
            if one.callee == "hal.device.query.i64":
                return self._query(one, text)
            return text
        if operation == "release":
            self._release(one, block, at)
            return None
        if operation == "assign":
            return self.text_of(self._value(one, 0))
        if operation.startswith("global."):
            return self._global(one)
        if operation.startswith(("list.", "buffer.")):
            return self._host(one)
        if operation == "select.ref" or operation.startswith("select."):
            test, yes, no = (self.text_of(self._value(one, position)) for position in range(3))
            kind = one.results[0].kind
            return Text(f"{yes.number()} if {test.test()} else {no.number()}", False, bounds=FULL.get(kind))
        if operation == "cast.any.ref":
            text, kind = self.text_of(self._value(one, 0)), annotation("r", one.type).partition("[")[0]
            return Text(f"cast({text.number()}, {kind})") if kind in ("list", "memoryview") else text
        if operation.startswith("switch."):
            index, default, *values = (self.text_of(self._value(one, at)) for at in range(len(one.operands)))
            items = ", ".join(text.number() for text in values)
            tuple_ = f"({items}{',' if len(values) == 1 else ''})"
            return Text(
                f"{tuple_}[{index.number()}] if 0 <= {index.number()} < {len(values)} else {default.number()}",
                False,
                bounds=FULL.get(one.results[0].kind),
            )
        operands = [self.text_of(self._value(one, position)) for position in range(len(one.operands))]
        template = EXPRESSIONS[operation]
        if template.atomic:
            operands = [self._atom(text) for text in operands]
        return expression(one, operands, self.counters)

    def _atom(self, text: Text) -> Text:
        """A text that may occur twice."""
        if text.atom and len(text.text) < 30 and "(" not in text.text:
            return text
        name = f"t{len(self.lines)}"
        self.line(f"{name} = {text.number()}")
        return Text(name, bounds=text.bounds)

    def _value(self, one: Instruction, at: int) -> Value:
        value = one.operands[at]
        assert not isinstance(value, tuple)
        return value

    def _query(self, one: Instruction, text: Text) -> Text:
        """The answer of a device: two results, or the second alone where it always answers."""
        known, answer = one.results
        if not known.uses:
            one.results = (answer,)
            return Text(f"{text.text} or 0", False, bounds=FULL["I"], truth=text.text)
        return Text(f"answer_of({text.text})")

    def _release(self, one: Instruction, block: Block, at: int) -> None:
        """Lets go of a buffer behind its last use."""
        buffer = self._value(one, 0)
        if not isinstance(buffer, Variable) or buffer.definitions != 1 or buffer in self.function.arguments:
            return
        uses = sum(value is buffer for each in block.instructions[: at + 1] for value in each.values())
        if uses == buffer.uses:
            for variable, (_, _, reads) in list(self._pending.items()):
                if buffer in reads:
                    self._store(variable)
            self.locate(one.location)
            self.line(f"del {buffer.name}")

    def _global(self, one: Instruction) -> Text | None:
        parts = one.operation.split(".")
        kind = parts[-1]
        if "indirect" in parts:
            raise self.calls.refused(one)
        if kind == "ref":
            name = self.module.attributes.names.get(one.ordinal)
            if name is None:  # the device
                return None
        else:
            name = self.module.attributes.number({"i32": "i", "i64": "I", "f32": "f", "f64": "F"}[kind], one.ordinal)
        if parts[1] == "load":
            return Text(f"self.{name}", bounds=FULL.get(one.results[0].kind))
        value = self.text_of(self._value(one, 0))
        self._before(one)
        self.locate(one.location)
        self.line(f"self.{name} = {value.number()}")
        return None

    # -- buffers and lists on the host ---------------------------------------------------------------

    def _host(self, one: Instruction) -> Text:
        texts = [self.text_of(self._value(one, position)).number() for position in range(len(one.operands))]
        noun, verb, *kind = one.operation.split(".")
        joined = ", ".join(texts)
        bounds = FULL.get(one.results[0].kind) if one.results else None
        if noun == "list":
            if verb in ("alloc", "reserve", "size"):
                return Text("[]" if verb == "alloc" else f"len({texts[0]})", bounds=bounds)
            if verb == "resize":
                return Text(f"resize({joined}, {self._zero(one)})")
            return Text(f"{'get' if verb == 'get' else 'put'}({joined})", bounds=bounds)
        letter = ""
        if kind:
            letter = _LETTERS[kind[0]]
            letter = letter.upper() if kind[-1] == "u" else letter
        if verb == "length":
            return Text(f"{texts[0]}.nbytes", bounds=bounds)
        if verb in ("load", "store", "fill"):
            return Text(f'{verb}("{letter}", {joined})', bounds=bounds)
        if verb in ("alloc", "clone"):  # memory of the host has the alignment that anything needs
            return Text(f"{'new_bytes' if verb == 'alloc' else 'clone_bytes'}({', '.join(texts[:-1])})")
        if verb in ("copy", "compare"):
            return Text(f"{verb}_bytes({joined})", bounds=bounds)
        raise self.calls.refused(one)

    def _zero(self, one: Instruction) -> str:
        items = one.operands[0]
        kind = (items.type or "") if isinstance(items, Variable) else ""
        inner = kind.partition("<")[2].rstrip(">")
        return "0.0" if inner.startswith("f") else "0" if inner.startswith("i") else "None"
