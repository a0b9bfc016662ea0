"""Code with which shaders report.

The first report wins, by an atomic compare-and-exchange of word 0. An invocation notes its finding in Private
variables, and reports at its end, because some drivers run the atomics and stores of a branch lane by lane even if no
lane takes the branch. For the same reason a cut loop reports a single word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from ..binary.grammar import BuiltIn, Decoration, ExecutionModel, Op, StorageClass
from .editor import Editor, Words, opcode_of
from .reports import HOST_WORDS, KERNEL_WORD, KIND_BITS, SITE_WORDS, Site
from .rewrite import Writer

_SCOPE_DEVICE: Final = 1
_SCOPE_QUEUE_FAMILY: Final = 5
_VULKAN_MEMORY_MODEL: Final = 3


class Reporter:
    """Adds a report's buffer and code to a module.

    Calling sequence: ``note`` in the code of passes, then ``finish``.
    """

    def __init__(self, editor: Editor, set_index: int, binding: int) -> None:
        self.editor = editor
        self.set = set_index
        self.binding = binding
        self.sites: list[Site] = []
        self._numbers: dict[Site, int] = {}
        # By function: the numbers of its sites, and the functions that it calls, as they come.
        self._steps: dict[int, list[tuple[int | None, int]]] = {}
        self._function = 0
        self._buffer = 0
        self._variables: dict[str, int] = {}
        self._entries = [entry[2] for entry in editor.entry_points if entry[1] == ExecutionModel.GLCompute]
        self.endings: list[Callable[[], list[Words]]] = []
        """Functions that make the code at the end of an entry point, before the report."""

    def number_of(self, site: Site) -> int:
        number = self._numbers.get(site)
        if number is None:
            number = self._numbers[site] = len(self.sites)
            self.sites.append(site)
            self._steps.setdefault(self._function, []).append((number, 0))
        return number

    def enter(self, function: int) -> None:
        """Begins the sites of a function, 0 for those of no one."""
        self._function = function

    def calls(self, function: int) -> None:
        """Takes note that the function calls another one."""
        self._steps.setdefault(self._function, []).append((None, function))

    def ordered_sites(self) -> tuple[Site, ...]:
        """Returns the sites by number, each with its place in the order of the program. For ``finish``'s callers."""
        order: list[int] = []
        seen: set[int] = set()
        for first in (*self._entries, *self._steps):
            if first in seen:
                continue
            seen.add(first)
            pending = [iter(self._steps.get(first, ()))]
            while pending:
                number, callee = next(pending[-1], (None, -1))
                if number is not None:
                    order.append(number)
                elif callee < 0:
                    pending.pop()
                elif callee not in seen:
                    seen.add(callee)
                    pending.append(iter(self._steps.get(callee, ())))
        return tuple(replace(site, order=order.index(number)) for number, site in enumerate(self.sites))

    def _status(self, name: str) -> int:
        if name not in self._variables:
            editor = self.editor
            self._variables[name] = editor.variable(StorageClass.Private, editor.u32(), editor.constant_u32(0))
        return self._variables[name]

    def note(self, writer: Writer, condition: int, site: int, low: int = 0, high: int = 0, limit: int = 0) -> None:
        """Notes a site where a condition holds, unless a site is noted already.

        ``low``, ``high`` and ``limit`` are ids of u32 values, 0 for none.
        """
        editor = self.editor
        u32, boolean = editor.u32(), editor.bool_type()
        known = writer.op(Op.Load, u32, self._status("what"))
        is_free = writer.op(Op.IEqual, boolean, known, editor.constant_u32(0))
        is_taken = writer.op(Op.LogicalAnd, boolean, condition, is_free)
        values = {"what": editor.constant_u32(self.sites[site].kind | site << KIND_BITS)}
        values |= {name: value for name, value in (("low", low), ("high", high), ("limit", limit)) if value}
        for name, value in values.items():
            old = writer.op(Op.Load, u32, self._status(name))
            writer.do(Op.Store, self._status(name), writer.op(Op.Select, u32, is_taken, value, old))

    def word(self, writer: Writer, number: int) -> int:
        """Returns a pointer to a word of the report; ``number`` is the id of a u32 value."""
        editor = self.editor
        if not self._buffer:
            self._buffer = editor.storage_buffer(editor.words_block(), self.set, self.binding, "pumice_report")
        kind = editor.pointer(StorageClass.StorageBuffer, editor.u32())
        return writer.op(Op.AccessChain, kind, self._buffer, editor.constant_u32(0), number)

    def kernel_word(self, writer: Writer) -> int:
        """Returns a pointer to the number of the kernel."""
        return self.word(writer, self.editor.constant_u32(KERNEL_WORD))

    def scope(self) -> int:
        """Returns the scope of atomics that the whole device sees."""
        is_vulkan_model = self.editor.memory_model == _VULKAN_MEMORY_MODEL
        return self.editor.constant_u32(_SCOPE_QUEUE_FAMILY if is_vulkan_model else _SCOPE_DEVICE)

    def zero(self, writer: Writer, number: int) -> int:
        """Returns a zero that compilers cannot fold; ``number``, 0 to 2, selects one of three.

        It is computed as "a workgroup's number is not below the number of workgroups". Unlike a word in memory, it
        costs almost nothing.
        """
        editor = self.editor
        parts = [
            self._component(writer, self._load(writer, self._input(built_in)), number)
            for built_in in (BuiltIn.WorkgroupId, BuiltIn.NumWorkgroups)
        ]
        is_past = writer.op(Op.UGreaterThanEqual, editor.bool_type(), *parts)
        return writer.op(Op.Select, editor.u32(), is_past, editor.constant_u32(1), editor.constant_u32(0))

    def _input(self, built_in: int) -> int:
        editor = self.editor
        inputs = [
            editor.built_in(built_in, editor.vector(3), index)
            for index, entry in enumerate(editor.entry_points)
            if entry[1] == ExecutionModel.GLCompute
        ]
        return inputs[0]

    def _load(self, writer: Writer, variable: int) -> tuple[int, int]:
        vector = self.editor.defs[self.editor.defs[variable][1]][3]
        return writer.op(Op.Load, vector, variable), self.editor.defs[vector][2]

    def _component(self, writer: Writer, loaded: tuple[int, int], axis: int) -> int:
        vector, scalar = loaded
        part = writer.op(Op.CompositeExtract, scalar, vector, axis)
        return part if scalar == self.editor.u32() else writer.op(Op.Bitcast, self.editor.u32(), part)

    def finish(self) -> None:
        """Wraps the compute shaders in functions that report noted sites."""
        editor = self.editor
        for index, entry in enumerate(editor.entry_points):
            if entry[1] == ExecutionModel.GLCompute:
                body = editor.wrap(index)
                writer = Writer(editor)
                for ending in self.endings:  # each entry point has ids of its own
                    writer.out += ending()
                self._end(writer, index)
                body += writer.out

    def _end(self, writer: Writer, entry: int) -> None:
        editor = self.editor
        u32, boolean, zero = editor.u32(), editor.bool_type(), editor.constant_u32(0)
        scope = self.scope()
        result = writer.op(Op.Load, u32, self._status("what"))

        def report() -> None:
            site = writer.op(Op.ShiftRightLogical, u32, result, editor.constant_u32(KIND_BITS))
            first = writer.op(Op.IMul, u32, site, editor.constant_u32(SITE_WORDS))
            words = [writer.op(Op.IAdd, u32, first, editor.constant_u32(HOST_WORDS + at)) for at in range(SITE_WORDS)]
            pointer = self.word(writer, words[0])
            old = writer.op(Op.AtomicCompareExchange, u32, pointer, scope, zero, zero, result, zero)
            if len(self._variables) > 1:
                writer.when(writer.op(Op.IEqual, boolean, old, zero), lambda: write(words))

        def write(words: list[int]) -> None:
            for number, name in ((4, "low"), (5, "high"), (6, "limit")):
                if name in self._variables:
                    value = writer.op(Op.Load, u32, self._variables[name])
                    writer.do(Op.Store, self.word(writer, words[number]), value)
            invocation = self._load(writer, editor.built_in(BuiltIn.GlobalInvocationId, editor.vector(3), entry))
            for axis in range(3):
                writer.do(Op.Store, self.word(writer, words[1 + axis]), self._component(writer, invocation, axis))

        writer.when(writer.op(Op.INotEqual, boolean, result, zero), report)
        writer.do(Op.Return)
        writer.do(Op.FunctionEnd)


def free_binding(editor: Editor, reserved: Iterable[tuple[int, int]] = ()) -> tuple[int, int]:
    """Returns the highest set in use, 0 if there is none, and the binding after its last."""
    used = list(reserved)
    for target, definition in editor.defs.items():
        if opcode_of(definition) in (Op.Variable, Op.UntypedVariableKHR):
            binding = editor.decoration(target, Decoration.Binding)
            if binding is not None:
                used.append((editor.decoration(target, Decoration.DescriptorSet) or 0, binding))
    set_index, binding = max(used, default=(0, -1))
    return set_index, min(binding + 1, 0xFFFFFFFF)  # if that is taken, pipelines refuse the number
