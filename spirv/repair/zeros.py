"""Large zero values, stored by loops.

Compilers of WGSL zero a variable by an initializer or by one store, whose value is a constant. Drivers make
instructions for each component of it: lavapipe takes 15 s for 2,048 words of workgroup memory, and minutes for 2,048
words of a function. A loop stores the same zeros.

Workgroup memory is zeroed by a group's first invocation, in front of a barrier. If the entry point accesses none
before, all invocations of the group share the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from ..binary.grammar import BuiltIn, Decoration, Op, StorageClass, opcodes_of
from ..binary.words import encode, read_binary
from ..instrument.blocks import Flow
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.paths import result_of
from ..instrument.rewrite import Writer, rewrite
from ..reflection.reflection_types import ShaderModuleReflection

#: The components that one instruction may store.
_MOST: Final = 16
_AGGREGATES: Final = (Op.TypeArray, Op.TypeStruct)
_CHAINS: Final = (Op.AccessChain, Op.InBoundsAccessChain)
_BETWEEN: Final = (Op.Label, Op.Variable, Op.Branch, Op.Line, Op.NoLine)
# What an entry point may do before its workgroup memory is zeroed, beside loads of other memory.
_HARMLESS: Final = {
    *_BETWEEN,
    *_CHAINS,
    *opcodes_of("Arithmetic", "Bit", "Relational_and_Logical", "Conversion", "Composite"),
}
_WORKGROUP: Final = 2  # the scope
_WORKGROUP_MEMORY: Final = 0x100  # of memory semantics


def with_zero_loops(code: bytes, reflection: ShaderModuleReflection) -> bytes:
    """Returns a valid module that stores large zero values by loops; the same bytes if it has none."""
    if not _has_null_aggregates(code):
        return code
    zeros = _Zeros(Editor(code), reflection)
    return zeros.code() if zeros.found else code


def _has_null_aggregates(code: bytes) -> bool:
    binary = read_binary(code)
    aggregates = set()
    for opcode, start, _ in binary:
        if opcode in _AGGREGATES:
            aggregates.add(binary.words[start + 1])
        elif opcode == Op.ConstantNull and binary.words[start + 1] in aggregates:
            return True
        elif opcode == Op.Function:
            break
    return False


class _Zeros:
    """The large zero values of a module.

    Attributes:
        found: their ids.
    """

    def __init__(self, editor: Editor, reflection: ShaderModuleReflection) -> None:
        self._editor = editor
        self._reflection = reflection
        self._counts: dict[int, int] = {}
        self.found: set[int] = {
            constant
            for constant, words in editor.defs.items()
            if opcode_of(words) == Op.ConstantNull and self._count(words[1]) > _MOST
        }

    def code(self) -> bytes:
        """Returns the module with loops."""
        editor = self._editor
        private = [
            encode(Op.Store, variable, editor.drop_initializer(variable))
            for variable, words in list(editor.defs.items())
            if opcode_of(words) == Op.Variable and words[3] == StorageClass.Private and words[-1] in self.found
        ]
        for body in editor.functions:
            entries = [index for index, entry in enumerate(editor.entry_points) if entry[2] == body[0][2]]
            shared = self._share(body, entries[0]) if len(entries) == 1 else None
            self._store_initializers(body, private if entries else [])
            if any(map(self._is_large, body)):
                body[:] = self._rewritten(body, shared)
        return editor.code()

    def _is_large(self, instruction: Words) -> bool:
        """Whether an instruction is the store of a large zero value; those with memory operands are left as they
        are.
        """
        return opcode_of(instruction) == Op.Store and instruction[2] in self.found and len(instruction) == 3

    def _store_initializers(self, body: list[Words], stores: Iterable[Words]) -> None:
        """Makes initializers of a function's variables stores, after those given."""
        stores = list(stores)
        after = 0
        for at, instruction in enumerate(body):
            if opcode_of(instruction) == Op.Label and not after:
                after = at + 1
            elif opcode_of(instruction) == Op.Variable:
                after = at + 1
                if len(instruction) > 4 and instruction[4] in self.found:
                    body[at] = encode(Op.Variable, *instruction[1:4])
                    stores.append(encode(Op.Store, instruction[2], instruction[4]))
        body[after:after] = stores

    # -- types -----------------------------------------------------------------------------------------

    def _count(self, type_id: int) -> int:
        """Returns the components of a type; those of an array whose length a driver decides count as one."""
        if type_id not in self._counts:
            self._counts[type_id] = self._counted(type_id)
        return self._counts[type_id]

    def _counted(self, type_id: int) -> int:
        words = self._editor.defs[type_id]
        match opcode_of(words):
            case Op.TypeVector | Op.TypeMatrix:
                return words[3] * self._count(words[2])
            case Op.TypeStruct:
                return sum(map(self._count, words[2:]))
            case Op.TypeArray if opcode_of(self._editor.defs[words[3]]) == Op.Constant:
                return self._length(words) * self._count(words[2])
        return 1

    def _length(self, array: Words) -> int:
        return self._editor.defs[array[3]][3]

    # -- one invocation for all ------------------------------------------------------------------------

    def _share(self, body: list[Words], entry: int) -> tuple[int, int, int] | None:
        """Moves stores of an entry point to workgroup memory in front of the test for the first invocation.

        Returns:
            The label of their block, the size of the group and its index variable; ``None`` if there are none.
        """
        editor = self._editor
        of_group = self._reflection.entry_points[entry]
        flow = Flow.of(body)
        made: dict[int, Words] = {}
        block = next(iter(flow.blocks.values()))
        while True:
            for instruction in block.code[:-2] if len(block.targets) > 1 else block.code:
                opcode = opcode_of(instruction)
                if opcode == Op.Load:
                    base = instruction[3]
                    while opcode_of(made.get(base, (0,))) in _CHAINS:
                        base = made[base][3]
                    if self._is_of_group(base):
                        return None
                elif opcode not in _HARMLESS:
                    return None
                if result := result_of(instruction):
                    made[result] = instruction
            if len(block.targets) != 1:
                break
            block = flow.blocks[block.targets[0]]
        merge, branch = block.code[-2:]
        if opcode_of(merge) != Op.SelectionMerge or opcode_of(branch) != Op.BranchConditional:
            return None
        inside, after = flow.blocks[branch[2]], flow.blocks[branch[3]]
        stores = [instruction for instruction in inside.code if self._is_large(instruction)]
        if (
            not stores
            or any(of_group.local_size_spec_ids)
            or inside.targets != (after.label,)
            or not all(map(self._is_zeroing, inside.code))
            or not self._is_first(made, branch[1])
            or not self._waits(after.code)
        ):
            return None
        inside.code[:] = [instruction for instruction in inside.code if instruction not in stores]
        block.code[-2:-2] = stores
        body[:] = flow.code()
        index = editor.built_in(BuiltIn.LocalInvocationIndex, editor.u32(), entry)
        return block.label, math.prod(of_group.local_size), index

    def _is_zeroing(self, instruction: Words) -> bool:
        is_store = opcode_of(instruction) == Op.Store and self._is_of_group(instruction[1])
        return is_store or opcode_of(instruction) in _BETWEEN

    def _is_of_group(self, pointer: int) -> bool:
        words = self._editor.defs.get(pointer, (0,))
        return opcode_of(words) == Op.Variable and words[3] == StorageClass.Workgroup

    def _is_first(self, made: dict[int, Words], condition: int) -> bool:
        """Whether a condition holds for a group's first invocation alone."""
        test = made.get(condition, (0,))
        built_in = BuiltIn.LocalInvocationIndex
        if opcode_of(test) == Op.All:
            test, built_in = made.get(test[3], (0,)), BuiltIn.LocalInvocationId
        if opcode_of(test) != Op.IEqual:
            return False
        position, zero = test[3:] if self._is_zero(test[4]) else reversed(test[3:])
        load = made.get(position, (0,))
        is_input = opcode_of(load) == Op.Load and self._editor.decoration(load[3], Decoration.BuiltIn) == built_in
        return is_input and self._is_zero(zero)

    def _is_zero(self, constant: int) -> bool:
        words = self._editor.defs.get(constant, (0,))
        match opcode_of(words):
            case Op.Constant:
                return not any(words[3:])
            case Op.ConstantComposite:
                return all(map(self._is_zero, words[3:]))
        return opcode_of(words) == Op.ConstantNull

    def _waits(self, block: list[Words]) -> bool:
        """Whether a block starts with a barrier of the workgroup and its memory."""
        barrier = block[1]
        if opcode_of(barrier) != Op.ControlBarrier:
            return False
        scope, _, semantics = (self._editor.defs.get(operand, (0,)) for operand in barrier[1:])
        if {opcode_of(scope), opcode_of(semantics)} != {Op.Constant}:
            return False
        return scope[3] == _WORKGROUP and bool(semantics[3] & _WORKGROUP_MEMORY)

    # -- loops -----------------------------------------------------------------------------------------

    def _rewritten(self, body: list[Words], shared: tuple[int, int, int] | None) -> list[Words]:
        label = 0

        def visit(instruction: Words, writer: Writer) -> None:
            nonlocal label
            if opcode_of(instruction) == Op.Label:  # which is written already
                label = instruction[1]
            elif not self._is_large(instruction):
                writer.put(instruction)
            else:
                pointer, value = instruction[1:]
                is_shared = shared is not None and label == shared[0] and self._is_of_group(pointer)
                group = shared[1:] if shared is not None and is_shared else None
                self._zero(writer, self._storage(body, pointer), pointer, self._editor.defs[value][1], group)

        return rewrite(self._editor, body, self._is_large, visit)

    def _storage(self, body: list[Words], pointer: int) -> int:
        """Returns the storage class of a pointer of a function or of the module."""
        words = self._editor.defs.get(pointer)
        if words is None:
            words = next(line for line in body if result_of(line) == pointer)
        return self._editor.defs[words[1]][2]

    def _zero(
        self, writer: Writer, storage: int, pointer: int, type_id: int, group: tuple[int, int] | None = None
    ) -> None:
        """Emits stores of zeros to all of a value.

        Args:
            group: the size of the group and its index variable, if all its invocations are here.
        """
        editor = self._editor
        words = editor.defs[type_id]

        def zero_part(part: int, *indices: int, group: tuple[int, int] | None = None) -> None:
            inner = writer.op(Op.AccessChain, editor.pointer(storage, part), pointer, *indices)
            self._zero(writer, storage, inner, part, group)

        if self._count(type_id) <= _MOST:
            if group is None:
                writer.do(Op.Store, pointer, editor.null(type_id))
            else:
                self._each(writer, 1, lambda _: writer.do(Op.Store, pointer, editor.null(type_id)), group)
        elif opcode_of(words) == Op.TypeStruct:
            for index, member in enumerate(words[2:]):
                zero_part(member, editor.constant_u32(index), group=group)
        else:
            lengths = []
            while opcode_of(editor.defs[type_id]) == Op.TypeArray and self._count(type_id) > 1:
                lengths.append(self._length(editor.defs[type_id]))
                type_id = editor.defs[type_id][2]

            def zero_element(index: int) -> None:
                indices: list[int] = []
                for length in reversed(lengths[1:]):
                    number = editor.constant_u32(length)
                    indices.insert(0, writer.op(Op.UMod, editor.u32(), index, number))
                    index = writer.op(Op.UDiv, editor.u32(), index, number)
                zero_part(type_id, index, *indices)

            self._each(writer, math.prod(lengths), zero_element, group)

    def _each(
        self, writer: Writer, count: int, body: Callable[[int], None], group: tuple[int, int] | None = None
    ) -> None:
        """Emits a body for each number below a count; the invocations of a group share the numbers."""
        editor, u32 = self._editor, self._editor.u32()
        if group is None:
            self._loop(writer, count, body)
            return
        size, variable = group
        kind = editor.defs[editor.defs[variable][1]][3]
        local = writer.op(Op.Load, kind, variable)
        local = local if kind == u32 else writer.op(Op.Bitcast, u32, local)

        def of_invocation(turn: int) -> None:
            index = writer.op(Op.IAdd, u32, writer.op(Op.IMul, u32, turn, editor.constant_u32(size)), local)
            if count % size == 0:
                body(index)
            else:
                is_in = writer.op(Op.ULessThan, editor.bool_type(), index, editor.constant_u32(count))
                writer.when(is_in, lambda: body(index))

        self._loop(writer, -(-count // size), of_invocation)

    def _loop(self, writer: Writer, count: int, body: Callable[[int], None]) -> None:
        editor, u32 = self._editor, self._editor.u32()
        if count == 1:
            body(editor.constant_u32(0))
            return
        header, inside, latch, after = (editor.fresh() for _ in range(4))
        index, following = editor.fresh(), editor.fresh()
        before = writer.label
        writer.do(Op.Branch, header)
        writer.block(header)
        writer.op(Op.Phi, u32, editor.constant_u32(0), before, following, latch, result=index)
        goes_on = writer.op(Op.ULessThan, editor.bool_type(), index, editor.constant_u32(count))
        writer.do(Op.LoopMerge, after, latch, 0)
        writer.do(Op.BranchConditional, goes_on, inside, after)
        writer.block(inside)
        body(index)
        writer.do(Op.Branch, latch)
        writer.block(latch)
        writer.op(Op.IAdd, u32, index, editor.constant_u32(1), result=following)
        writer.do(Op.Branch, header)
        writer.block(after)
