"""Code that shaders report with.

The first writer wins, by an atomic compare-and-exchange of word 0. An invocation notes what it finds in Private
variables, and reports at its end: drivers that run all lanes of a branch run atomics and stores lane by lane even where
no lane takes it. For the same reason a cut loop reports one word only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..binary.grammar import BuiltIn, Decoration, ExecutionModel, Op, StorageClass
from ..binary.words import encode
from .editor import Editor, Words, opcode_of
from .reports import KIND_BITS, REPORT_WORDS, Place, ReportKind

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
        self.places: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._kinds: set[ReportKind] = set()
        self._buffer = 0
        self._variables: dict[str, int] = {}
        self.endings: list[Words] = []
        """Code at the end of each entry point, before the report."""

    def place(self, place: Place) -> int:
        """Returns the number of a place."""
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self.places)
            self.places.append(place)
        return number

    def _status(self, name: str) -> int:
        """Returns a Private variable of the invocation."""
        if name not in self._variables:
            editor = self.editor
            self._variables[name] = editor.variable(StorageClass.Private, editor.u32(), editor.constant_u32(0))
        return self._variables[name]

    def note(self, condition: int, place: int, low: int = 0, high: int = 0, limit: int = 0) -> list[Words]:
        """Code that notes a place where a condition holds, unless one is noted already.

        ``low``, ``high`` and ``limit`` are ids of u32 values, 0 for none.
        """
        editor = self.editor
        u32, boolean = editor.u32(), editor.bool_type()
        kind = self.places[place].kind
        known, free, taken = editor.fresh(), editor.fresh(), editor.fresh()
        code = [
            encode(Op.Load, u32, known, self._status("what")),
            encode(Op.IEqual, boolean, free, known, editor.constant_u32(0)),
            encode(Op.LogicalAnd, boolean, taken, condition, free),
        ]
        values = {"what": editor.constant_u32(kind | place << KIND_BITS)}
        values |= {name: value for name, value in (("low", low), ("high", high), ("limit", limit)) if value}
        for name, value in values.items():
            old, new = editor.fresh(), editor.fresh()
            variable = self._status(name)
            code += [
                encode(Op.Load, u32, old, variable),
                encode(Op.Select, u32, new, taken, value, old),
                encode(Op.Store, variable, new),
            ]
        return code

    def word(self, number: int) -> tuple[list[Words], int]:
        """Code that makes a pointer to a word of the report, and the pointer."""
        editor = self.editor
        if not self._buffer:
            array = editor.type(Op.TypeArray, editor.u32(), editor.constant_u32(REPORT_WORDS))
            editor.decorate(array, Decoration.ArrayStride, 4)
            block = editor.block(array)
            self._buffer = editor.storage_buffer(block, self.set, self.binding, "pumice_report")
        pointer = editor.fresh()
        kind = editor.pointer(StorageClass.StorageBuffer, editor.u32())
        indices = editor.constant_u32(0), editor.constant_u32(number)
        return [encode(Op.AccessChain, kind, pointer, self._buffer, *indices)], pointer

    def zero(self, number: int) -> tuple[list[Words], int]:
        """Code that makes a zero which no compiler knows, and the zero; ``number`` is 0 to 2, each a zero of its own.

        It is whether a workgroup's number is not below their count. Other than words in memory it costs next to
        nothing.
        """
        editor = self.editor
        code: list[Words] = []
        parts: list[int] = []
        for built_in in (BuiltIn.WorkgroupId, BuiltIn.NumWorkgroups):
            more, scalars = self._components(self._input(built_in), (number,))
            code += more
            parts += scalars
        is_past, value = editor.fresh(), editor.fresh()
        code += [
            encode(Op.UGreaterThanEqual, editor.bool_type(), is_past, *parts),
            encode(Op.Select, editor.u32(), value, is_past, editor.constant_u32(1), editor.constant_u32(0)),
        ]
        return code, value

    def _input(self, built_in: int) -> int:
        """Returns the variable of a built-in vector of three, in the interface of all compute shaders."""
        editor = self.editor
        inputs = [
            editor.built_in(built_in, editor.vector(3), index)
            for index, entry in enumerate(editor.entry_points)
            if entry[1] == ExecutionModel.GLCompute
        ]
        return inputs[0]

    def _components(self, variable: int, axes: Iterable[int]) -> tuple[list[Words], list[int]]:
        """Code that loads components of a built-in vector, and them as u32 values."""
        editor = self.editor
        vector = editor.defs[editor.defs[variable][1]][3]
        scalar = editor.defs[vector][2]
        loaded = editor.fresh()
        code = [encode(Op.Load, vector, loaded, variable)]
        components = []
        for axis in axes:
            part = editor.fresh()
            code.append(encode(Op.CompositeExtract, scalar, part, loaded, axis))
            if scalar != editor.u32():
                word = editor.fresh()
                code.append(encode(Op.Bitcast, editor.u32(), word, part))
                part = word
            components.append(part)
        return code, components

    def finish(self) -> None:
        """Wraps the compute shaders in functions that report what was noted."""
        editor = self.editor
        for index, entry in enumerate(editor.entry_points):
            if entry[1] == ExecutionModel.GLCompute:
                body = editor.wrap(index)
                body += self.endings
                body += self._ending(index)

    def _ending(self, entry: int) -> list[Words]:
        editor = self.editor
        u32, boolean, zero = editor.u32(), editor.bool_type(), editor.constant_u32(0)
        result, is_noted, report, end = (editor.fresh() for _ in range(4))
        old, is_first, write, done = (editor.fresh() for _ in range(4))
        is_vulkan_model = editor.memory_model == _VULKAN_MEMORY_MODEL
        scope = editor.constant_u32(_SCOPE_QUEUE_FAMILY if is_vulkan_model else _SCOPE_DEVICE)
        first, pointer = self.word(0)
        code = [
            encode(Op.Load, u32, result, self._status("what")),
            encode(Op.INotEqual, boolean, is_noted, result, zero),
            encode(Op.SelectionMerge, end, 0),
            encode(Op.BranchConditional, is_noted, report, end),
            encode(Op.Label, report),
            *first,
            encode(Op.AtomicCompareExchange, u32, old, pointer, scope, zero, zero, result, zero),
        ]
        if len(self._variables) > 1:
            code += [
                encode(Op.IEqual, boolean, is_first, old, zero),
                encode(Op.SelectionMerge, done, 0),
                encode(Op.BranchConditional, is_first, write, done),
                encode(Op.Label, write),
            ]
            for number, name in ((5, "low"), (6, "high"), (7, "limit")):
                if name in self._variables:
                    value = editor.fresh()
                    code.append(encode(Op.Load, u32, value, self._variables[name]))
                    code += self._write(number, value)
            invocation = editor.built_in(BuiltIn.GlobalInvocationId, editor.vector(3), entry)
            more, axes = self._components(invocation, range(3))
            code += more
            for axis, value in enumerate(axes):
                code += self._write(2 + axis, value)
            code += [encode(Op.Branch, done), encode(Op.Label, done)]
        return [
            *code,
            encode(Op.Branch, end),
            encode(Op.Label, end),
            encode(Op.Return),
            encode(Op.FunctionEnd),
        ]

    def _write(self, number: int, value: int) -> list[Words]:
        code, pointer = self.word(number)
        return [*code, encode(Op.Store, pointer, value)]


def free_binding(editor: Editor, reserved: Iterable[tuple[int, int]] = ()) -> tuple[int, int]:
    """Returns the highest set in use, 0 if there is none, and the binding past its last."""
    used = list(reserved)
    for target, definition in editor.defs.items():
        if opcode_of(definition) in (Op.Variable, Op.UntypedVariableKHR):
            binding = editor.decoration(target, Decoration.Binding)
            if binding is not None:
                used.append((editor.decoration(target, Decoration.DescriptorSet) or 0, binding))
    set_index, binding = max(used, default=(0, -1))
    return set_index, binding + 1
