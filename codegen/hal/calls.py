"""Calls of the ``hal`` module's imports as Python on the HAL."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Final

from ...hal.memory import BufferUsage, MemoryTypeFlags
from ...status import UnimplementedError
from ..program.ir import NULL, Constant, Function, Instruction, Operand, Program, Rodata, Value, Variable
from .data import DataTable
from .expressions import Text
from .names import Attributes, element_name, flags_name

_NOT_WRITTEN: Final = {
    "hal.channel": "collectives between devices are not implemented",
    "hal.command_buffer.collective": "collectives between devices are not implemented",
    "io_parameters": "parameters of files are read by sessions; compile the weights into the module",
}


class Module:
    """What all functions of a program share while they are written.

    Attributes:
        used: names that the written code imports, or that are defined for it.
        flags: constants of flags by name.
    """

    def __init__(self, program: Program, data: DataTable) -> None:
        self.program = program
        self.data = data
        self.attributes = Attributes(program)
        self.used: set[str] = set()
        self.flags: dict[str, tuple[int, type[enum.IntFlag]]] = {}

    def use(self, name: str) -> str:
        """Notes an imported name, and returns it."""
        self.used.add(name)
        return name

    def flag(self, value: Value, kind: type[enum.IntFlag]) -> str | None:
        """The constant of flags that are known."""
        if not isinstance(value, Constant):
            return None
        name = flags_name(int(value.number), kind)
        self.flags[name] = (int(value.number), kind)
        return name


class CallTexts:
    """The texts of calls of one function; ``text_of`` gives the text of an operand."""

    def __init__(self, module: Module, function: Function, text_of: Callable[[Value], Text]) -> None:
        self.module = module
        self.function = function
        self._text_of = text_of

    def call(self, one: Instruction) -> Text:
        """A call as an expression; its value is a tuple for several results."""
        if isinstance(one.callee, int):
            return self._internal(one)
        name = str(one.callee)
        writer = _WRITERS.get(name)
        if writer is None:
            raise self.refused(name, one)
        return writer(self, one)

    def refused(self, name: str, one: Instruction) -> UnimplementedError:
        """The error for an import that HAL code has nothing for."""
        why = next((text for prefix, text in _NOT_WRITTEN.items() if name.startswith(prefix)), None)
        if why is None:
            why = f"it is a function of the module {name.partition('.')[0]}, which is none that HAL code can call"
        place = f" at {one.location}" if one.location else ""
        return UnimplementedError(
            f"function {self.function.name} of module {self.module.program.name} calls {name}{place}: {why}. Run the "
            "module with pumice.Session, or `pumice run`"
        )

    # -- operands ------------------------------------------------------------------------------------

    def arg(self, operand: Operand) -> str:
        """An operand as an argument."""
        assert not isinstance(operand, tuple)
        return self._text_of(operand).number()

    def rows(self, operand: Operand) -> Sequence[Value | tuple[Value, ...]]:
        """The rows of a repeated operand."""
        assert isinstance(operand, tuple)
        return operand

    def shape(self, operand: Operand) -> str:
        """A tuple of lengths."""
        texts = [self.arg(row) for row in self.rows(operand)]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def data(self, operand: Operand) -> str:
        """The bytes of a host buffer."""
        if isinstance(operand, Rodata):
            return self.module.data.text(operand.ordinal)
        return self.arg(operand)

    def text(self, operand: Operand) -> str:
        """The text in a host buffer, as a literal."""
        if isinstance(operand, Rodata):
            return quoted(self.module.program.text(operand))
        return f'bytes({self.arg(operand)}).decode("utf-8", "replace")'

    def fences(self, one: Instruction, at: int = 2) -> str:
        """The keyword arguments for a wait and a signal fence."""
        parts = []
        for name, operand in zip(("wait", "signal"), one.operands[at : at + 2], strict=True):
            if operand != NULL:
                parts.append(f", {name}={self.arg(operand)}")
        return "".join(parts)

    def flags(self, operand: Operand, kind: type[enum.IntFlag]) -> str:
        """Flags, by a constant's name where they are known."""
        assert not isinstance(operand, tuple)
        return self.module.flag(operand, kind) or self.arg(operand)

    def element(self, operand: Operand) -> str:
        """An element type."""
        if isinstance(operand, Constant):
            self.module.use("ElementType")
            return element_name(int(operand.number))
        return self.arg(operand)

    def encoding(self, operand: Operand) -> str:
        """The keyword argument for an encoding; none for the dense one."""
        if isinstance(operand, Constant) and operand.number == 1:
            return ""
        return f", encoding={self.arg(operand)}"

    # -- functions of the program --------------------------------------------------------------------

    def _internal(self, one: Instruction) -> Text:
        assert isinstance(one.callee, int)
        callee = self.module.program.functions[one.callee]
        arguments = [self.arg(operand) for operand in one.operands]
        if callee.declaration is not None and callee.declaration.is_async:
            arguments[-2:] = [
                f"{name}={text}"
                for name, text in zip(("wait", "signal"), arguments[-2:], strict=True)
                if text != "None"
            ]
        return Text(f"self.{method_name(callee)}({', '.join(arguments)})")

    # -- buffers and views ---------------------------------------------------------------------------

    def buffer_assert(self, one: Instruction) -> Text:
        buffer, message, _, length, memory, usage = one.operands
        return Text(
            f"{self.module.use('check_compatible')}({self.arg(buffer)}, {self.text(message)}, {self.arg(length)}, "
            f"{self.flags(memory, MemoryTypeFlags)}, {self.flags(usage, BufferUsage)})"
        )

    def view_assert(self, one: Instruction) -> Text:
        view, message, element, encoding, shape = one.operands
        return Text(
            f"{self.module.use('check_view')}({self.arg(view)}, {self.text(message)}, {self.element(element)}, "
            f"{self.shape(shape)}{self.encoding(encoding)})"
        )

    def view_create(self, one: Instruction) -> Text:
        buffer, offset, length, element, encoding, shape = one.operands
        start = "" if offset == Constant("I", 0) else f", offset={self.arg(offset)}"
        return Text(
            f"{self.module.use('create_view')}({self.arg(buffer)}, {self.element(element)}, {self.shape(shape)}"
            f"{start}, length={self.arg(length)}{self.encoding(encoding)})"
        )

    def view_buffer(self, one: Instruction) -> Text:
        return Text(f"{self.arg(one.operands[0])}.buffer")

    def plain(self, name: str) -> Callable[[Instruction], Text]:
        """A call of a function with the same operands."""
        return lambda one: Text(f"{self.module.use(name)}({', '.join(self.arg(each) for each in one.operands)})")

    def trace(self, one: Instruction) -> Text:
        key, views = one.operands
        texts = [self.arg(row) for row in self.rows(views) if not isinstance(row, tuple)]
        return Text(f"{self.module.use('trace_views')}(self.context, {self.text(key)}, [{', '.join(texts)}])")

    def load(self, one: Instruction) -> Text:
        buffer, offset, size = (self.arg(each) for each in one.operands)
        return Text(f"{self.module.use('load_word')}(self.context, {buffer}, offset={offset}, size={size})")

    def store(self, one: Instruction) -> Text:
        value, buffer, offset, size = (self.arg(each) for each in one.operands)
        return Text(f"{self.module.use('store_word')}(self.context, {value}, {buffer}, offset={offset}, size={size})")

    # -- memory --------------------------------------------------------------------------------------

    def allocate(self, one: Instruction) -> Text:
        memory, usage, size = one.operands[2:5]
        return self._allocate(memory, usage, size)

    def _allocate(self, memory: Operand, usage: Operand, size: Operand) -> Text:
        return Text(
            f"self.context.allocator.allocate({self.flags(memory, MemoryTypeFlags)}, "
            f"{self.flags(usage, BufferUsage)}, size={self.arg(size)})"
        )

    def alloca(self, one: Instruction) -> Text:
        pool, memory, usage, size = one.operands[4:8]
        if not (isinstance(pool, Constant) and pool.number == 0):
            raise UnimplementedError(f"function {self.function.name} allocates from a pool; there are none")
        return self._allocate(memory, usage, size)

    def import_memory(self, one: Instruction) -> Text:
        _, attempt, _, memory, usage, source, offset, size = one.operands
        return Text(
            f"{self.module.use('import_memory')}(self.device, self.context.allocator, {self.data(source)}, "
            f"{self.arg(offset)}, {self.arg(size)}, {self.flags(memory, MemoryTypeFlags)}, "
            f"{self.flags(usage, BufferUsage)}, attempt=bool({self.arg(attempt)}))"
        )

    def file(self, one: Instruction) -> Text:
        buffer, offset, size = one.operands[3:6]
        self.module.use("HalFile")
        start, length = self.arg(offset), self.arg(size)
        text = f"HalFile({self.data(buffer)}{'' if isinstance(buffer, Rodata) else '.toreadonly()'})"
        if (
            isinstance(buffer, Rodata)
            and start == "0"
            and length in ("-1", str(len(self.module.program.rodata[buffer.ordinal])))
        ):
            return Text(text)
        end = f"HalFile({self.data(buffer)}).view.nbytes - {start}" if length == "-1" else length
        return Text(f'HalFile({text}.range({start}, {end}, "ex.file.from_memory"))')

    # -- executables and command buffers -------------------------------------------------------------

    def executable(self, one: Instruction) -> Text:
        kind, data, constants = one.operands[-3:]
        given = 'b""' if constants == NULL else f"bytes({self.data(constants)})"
        return Text(f"self.device.program_executable({self.text(kind)}, {self.data(data)}, constants={given})")

    def lookup(self, one: Instruction) -> Text:
        return Text(f"{self.arg(one.operands[0])}.lookup({self.text(one.operands[1])})")

    def query(self, one: Instruction) -> Text:
        return Text(f"self.device.query({self.text(one.operands[1])}, {self.text(one.operands[2])})")

    def commands(self, one: Instruction) -> Text:
        modes, capacity = one.operands[1], one.operands[4]
        parts = []
        if capacity != Constant("i", 0):
            parts.append(f"binding_capacity={self.arg(capacity)}")
        if not isinstance(modes, Constant):
            parts.append(f"one_shot=bool({self.arg(modes)} & 1)")
        elif int(modes.number) & 1:
            parts.append("one_shot=True")
        return Text(f"self._record({', '.join(parts)})")

    def method(self, name: str) -> Callable[[Instruction], Text]:
        """A call of a method of the first operand, without arguments."""
        return lambda one: Text(f"{self.arg(one.operands[0])}.{name}()")

    def label(self, one: Instruction) -> Text:
        return Text(f"{self.arg(one.operands[0])}.begin_label({self.text(one.operands[1])})")

    def _range(self, commands: str, at: Operand, buffer: Operand, offset: Operand, size: Operand, written: bool) -> str:
        read = "" if written else ", written=False"
        return f"{commands}.reference({self.arg(at)}, {self.arg(buffer)}, {self.arg(offset)}, {self.arg(size)}{read})"

    def fill(self, one: Instruction) -> Text:
        commands = self.arg(one.operands[0])
        target, offset, size, at, pattern, width = one.operands[1:7]
        place = self._range(commands, at, target, offset, size, True)
        return Text(f"{commands}.fill({place}, {self._pattern(pattern, width)})")

    def _pattern(self, pattern: Operand, width: Operand) -> str:
        if isinstance(pattern, Constant) and isinstance(width, Constant) and width.number in (1, 2, 4):
            number, size = int(pattern.number), int(width.number)
            return repr((number & ((1 << 8 * size) - 1)).to_bytes(size, "little")).replace("'", '"')
        return f"{self.module.use('pattern_of')}({self.arg(pattern)}, {self.arg(width)})"

    def update(self, one: Instruction) -> Text:
        commands = self.arg(one.operands[0])
        source, start, target, offset, size, at = one.operands[1:7]
        place = self._range(commands, at, target, offset, size, True)
        self.module.use("HalFile")
        data = f'HalFile({self.data(source)}).range({self.arg(start)}, {self.arg(size)}, "update_buffer")'
        return Text(f"{commands}.update({place}, {data}.tobytes())")

    def copy(self, one: Instruction) -> Text:
        commands = self.arg(one.operands[0])
        source_slot, target_slot, source, source_offset, target, target_offset, size = one.operands[1:8]
        here = self._range(commands, source_slot, source, source_offset, size, False)
        there = self._range(commands, target_slot, target, target_offset, size, True)
        length = self.arg(size)
        return Text(f"{commands}.copy({here}, {there}{'' if length == '-1' else f', {length}'})")

    def _bindings(self, operand: Operand) -> str:
        texts = []
        for row in self.rows(operand):
            assert isinstance(row, tuple)
            _, at, buffer, offset, size = row
            if buffer == NULL:
                parts = [self.arg(at)]
                if offset != Constant("I", 0):
                    parts.append(f"offset={self.arg(offset)}")
                if size != Constant("I", -1):
                    parts.append(f"size={self.arg(size)}")
                texts.append(f"{self.module.use('slot')}({', '.join(parts)})")
            else:
                texts.append(f"(0, {', '.join(self.arg(each) for each in row[1:])})")
        return f"[{', '.join(texts)}]"

    def _words(self, operand: Operand) -> str:
        return f"[{', '.join(self.arg(row) for row in self.rows(operand))}]"

    def dispatch(self, one: Instruction) -> Text:
        commands, executable, function, x, y, z, flags, constants, bindings = one.operands
        groups = ", ".join(self._group(each) for each in (x, y, z))
        return Text(
            f"{self.arg(commands)}.dispatch_function({self.arg(executable)}, {self.arg(function)}, "
            f"groups=({groups}), flags={self.arg(flags)}, constants={self._words(constants)}, "
            f"bindings={self._bindings(bindings)})"
        )

    def _group(self, operand: Operand) -> str:
        assert not isinstance(operand, tuple)
        text = self._text_of(operand)
        return text.number() if text.bounds is not None and text.bounds[0] >= 0 else f"{text.operand()} & 0xFFFFFFFF"

    def dispatch_indirect(self, one: Instruction) -> Text:
        commands, executable, function, at, workgroups, offset, flags, constants, bindings = one.operands
        counts = self._range(self.arg(commands), at, workgroups, offset, Constant("I", 12), False)
        return Text(
            f"{self.arg(commands)}.dispatch_function_indirect({self.arg(executable)}, {self.arg(function)}, "
            f"counts={counts}, flags={self.arg(flags)}, constants={self._words(constants)}, "
            f"bindings={self._bindings(bindings)})"
        )

    # -- queues --------------------------------------------------------------------------------------

    def execute_indirect(self, one: Instruction) -> Text:
        texts = []
        for row in self.rows(one.operands[-1]):
            assert isinstance(row, tuple)
            texts.append(f"({', '.join(self.arg(each) for each in row)})")
        table = f", bindings=[{', '.join(texts)}]" if texts else ""
        return Text(
            f"{self.module.use('queue_execute')}(self.context, {self.arg(one.operands[4])}{table}{self.fences(one)})"
        )

    def execute(self, one: Instruction) -> Text:
        commands = one.operands[4]
        if isinstance(commands, tuple):
            texts = [self.arg(row) for row in commands if not isinstance(row, tuple)]
            return Text(f"{self.module.use('queue_execute_all')}(self.context, [{', '.join(texts)}]{self.fences(one)})")
        return Text(f"{self.module.use('queue_execute')}(self.context, {self.arg(commands)}{self.fences(one)})")

    def queue(self, name: str) -> Callable[[Instruction], Text]:
        """A transfer whose operands are the function's."""

        def write(one: Instruction) -> Text:
            operands = one.operands[4:-1]
            if name == "queue_fill":
                buffer, offset, size, pattern, width = operands
                texts = [self.arg(buffer), self.arg(offset), self.arg(size), self._pattern(pattern, width)]
            else:
                texts = [self.data(each) if isinstance(each, Rodata) else self.arg(each) for each in operands]
            return Text(f"{self.module.use(name)}(self.context, {', '.join(texts)}{self.fences(one)})")

        return write

    # -- fences --------------------------------------------------------------------------------------

    def fence_create(self, one: Instruction) -> Text:
        return Text(f"{self.module.use('HalFence')}(self.device)")

    def fence_join(self, one: Instruction) -> Text:
        texts = [self.arg(row) for row in self.rows(one.operands[-1])]
        return Text(f"{self.module.use('join')}([{', '.join(texts)}])")

    def fence_await(self, one: Instruction) -> Text:
        fences = [row for row in self.rows(one.operands[-1]) if not isinstance(row, tuple)]
        timeout = one.operands[0]
        if not one.results and len(fences) == 1 and isinstance(fences[0], Variable) and self.is_fence(fences[0]):
            return Text(f"{self.arg(fences[0])}.wait_until()")
        texts = ", ".join(self.arg(fence) for fence in fences)
        forever = isinstance(timeout, Constant) and timeout.number == -1
        limit = "" if forever else f", milliseconds={self.arg(timeout)}"
        return Text(f"{self.module.use('await_fences')}([{texts}]{limit})")

    def is_fence(self, variable: Variable) -> bool:
        """Whether a fence is never null."""
        return not self._may_be_null(variable)

    def _may_be_null(self, variable: Variable) -> bool:
        if variable in self.function.arguments:
            return True
        for block in self.function.blocks:
            for one in block.instructions:
                if variable in one.results and one.operation != "call":
                    source = one.operands[0] if one.operation == "assign" else NULL
                    if not isinstance(source, Variable) or source is variable or self._may_be_null(source):
                        return True
            for edge in block.edges:
                for target, value in edge.copies:
                    if target is variable and (not isinstance(value, Variable) or self._may_be_null(value)):
                        return True
        return False


def method_name(function: Function) -> str:
    """The method that is a function."""
    return function.name if function.exported else f"_{function.name}"


def quoted(text: str) -> str:
    """A string literal in double quotes."""
    literal = repr(text)
    if literal[0] == "'" and '"' not in literal:
        return f'"{literal[1:-1]}"'
    return literal


_Writer = Callable[[CallTexts, Instruction], Text]


def _method(name: str) -> _Writer:
    return lambda texts, one: texts.method(name)(one)


def _function(name: str) -> _Writer:
    return lambda texts, one: texts.plain(name)(one)


def _queue(name: str) -> _Writer:
    return lambda texts, one: texts.queue(name)(one)


_WRITERS: Final[dict[str, _Writer]] = {
    "hal.allocator.allocate": CallTexts.allocate,
    "hal.allocator.import": CallTexts.import_memory,
    "hal.buffer.allocation.discard": _function("discard"),
    "hal.buffer.allocation.is_terminal": _function("is_terminal"),
    "hal.buffer.allocation.preserve": _function("preserve"),
    "hal.buffer.assert": CallTexts.buffer_assert,
    "hal.buffer.length": lambda texts, one: Text(f"{texts.arg(one.operands[0])}.size"),
    "hal.buffer.load": CallTexts.load,
    "hal.buffer.store": CallTexts.store,
    "hal.buffer.subspan": _function("subspan"),
    "hal.buffer_view.assert": CallTexts.view_assert,
    "hal.buffer_view.buffer": CallTexts.view_buffer,
    "hal.buffer_view.create": CallTexts.view_create,
    "hal.buffer_view.dim": _function("dim_of"),
    "hal.buffer_view.element_type": _function("element_type_of"),
    "hal.buffer_view.encoding_type": _function("encoding_of"),
    "hal.buffer_view.rank": _function("rank_of"),
    "hal.buffer_view.trace": CallTexts.trace,
    "hal.command_buffer.advise_buffer": _method("check_recording"),
    "hal.command_buffer.begin_debug_group": CallTexts.label,
    "hal.command_buffer.copy_buffer": CallTexts.copy,
    "hal.command_buffer.create": CallTexts.commands,
    "hal.command_buffer.dispatch": CallTexts.dispatch,
    "hal.command_buffer.dispatch.indirect": CallTexts.dispatch_indirect,
    "hal.command_buffer.end_debug_group": _method("end_label"),
    "hal.command_buffer.execution_barrier": _method("execution_barrier"),
    "hal.command_buffer.fill_buffer": CallTexts.fill,
    "hal.command_buffer.finalize": _method("end"),
    "hal.command_buffer.update_buffer": CallTexts.update,
    "hal.device.allocator": lambda texts, one: Text("self.context.allocator"),
    "hal.device.query.i64": CallTexts.query,
    "hal.device.queue.alloca": CallTexts.alloca,
    "hal.device.queue.barrier": lambda texts, one: texts.plain("alias")(
        Instruction("call", one.operands[2:4], callee=one.callee)
    ),
    "hal.device.queue.copy": _queue("queue_copy"),
    "hal.device.queue.dealloca": lambda texts, one: texts.plain("alias")(
        Instruction("call", one.operands[2:4], callee=one.callee)
    ),
    "hal.device.queue.execute": CallTexts.execute,
    "hal.device.queue.execute.indirect": CallTexts.execute_indirect,
    "hal.device.queue.fill": _queue("queue_fill"),
    "hal.device.queue.flush": lambda texts, one: Text("self.device.check_usable()"),
    "hal.device.queue.read": _queue("queue_read"),
    "hal.device.queue.update": _queue("queue_update"),
    "hal.device.queue.write": _queue("queue_write"),
    "hal.ex.file.from_memory": CallTexts.file,
    "hal.executable.create": CallTexts.executable,
    "hal.executable.lookup.function": CallTexts.lookup,
    "hal.fence.await": CallTexts.fence_await,
    "hal.fence.create": CallTexts.fence_create,
    "hal.fence.fail": _function("fail_with"),
    "hal.fence.join": CallTexts.fence_join,
    "hal.fence.query": _function("status_of"),
    "hal.fence.signal": _method("signal"),
}
