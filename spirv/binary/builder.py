"""Builds SPIR-V modules: one compute shader whose values are typed expressions.

Calling sequence: ``Builder`` → buffers, then expressions by operators and methods of ``Id``, ``conditional`` and
``loop`` → ``finish``.

An instruction that a dominating block already has with the same operands is not written again, and known integers and
booleans are folded. Every instruction is pure except those that ``written`` and ``write`` add, such as atomic
instructions and stores. Other loads read constants, or buffers that the shader does not write.

Shared memory of a workgroup is in ``shared_memory``, cooperative matrices are in ``matrices``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from .declarations import BOOL, SUBGROUP, U32, U64, Declarations, Kind, bits_of
from .expression import Id
from .folding import Operands, folded
from .grammar import BuiltIn, Decoration, Op, StorageClass
from .offsets import RULES, quotient
from .words import encode

# Scopes, and memory semantics of atomic instructions.
_DEVICE: Final = 1
_ALIGNED: Final = 2  # a memory operand
_RELAXED: Final = 0
_WORKGROUP: Final = 2
_SHARED_IN_ORDER: Final = 0x108  # AcquireRelease | WorkgroupMemory


_POINTER: Final = Kind("pointer", 32)
_ROUNDED: Final = frozenset({Op.FAdd, Op.FSub, Op.FMul})


class Builder:
    """A module with one compute shader, written from the first instruction to the last.

    Attributes:
        declarations: the declarations ahead of the function.
        size: the words of all instructions so far.
        contracts: whether sums of products may be fused from here on.
        loaded: the buffers that are read.
    """

    def __init__(self) -> None:
        self.declarations: Declarations = Declarations()
        self._body: list[int] = []
        self._constants: dict[tuple[Kind, int], Id] = {}
        self._words: dict[int, Id] = {}
        self._scopes: list[dict[Hashable, Any]] = [{}]
        self._first_label = self._label = self.declarations.fresh()
        self.contracts = False
        self.loaded: set[int] = set()

    @property
    def size(self) -> int:
        """Words of the function's instructions so far."""
        return len(self._body)

    # -- constants -------------------------------------------------------------------------------------

    def constant(self, kind: Kind, value: float) -> Id:
        """Returns a constant; integers wrap around."""
        return self.constant_bits(kind, bits_of(kind, value))

    def constant_bits(self, kind: Kind, bits: int) -> Id:
        constant = self._constants.get((kind, bits))
        if constant is None:
            number = self.declarations.constant(kind, bits)
            constant = self._constants[(kind, bits)] = Id(self, number, kind, None if kind.letter == "f" else bits)
        return constant

    def word(self, value: int) -> Id:
        """Returns a 32-bit constant."""
        constant = self._words.get(value)
        if constant is None:
            constant = self._words[value] = self.constant_bits(U32, value & 0xFFFFFFFF)
        return constant

    def boolean(self, value: object) -> Id:
        """Returns a boolean constant."""
        return self.constant_bits(BOOL, 1 if value else 0)

    # -- instructions ----------------------------------------------------------------------------------

    def known(self, key: Hashable) -> Any:
        """Returns the value kept under a key in a dominating block, or None."""
        for scope in reversed(self._scopes):
            value = scope.get(key)
            if value is not None:
                return value
        return None

    def keep(self, key: Hashable, value: Any) -> None:
        """Keeps a value for the blocks that this one dominates."""
        self._scopes[-1][key] = value

    def emit(self, opcode: int, kind: Kind, *operands: Id | int) -> Id:
        """Returns the result of an instruction, and writes it unless it is known; numbers among the operands are
        literals.
        """
        return self._emit(opcode, self.declarations.type(kind), kind, *operands)

    def _emit(self, opcode: int, type: int, kind: Kind, *operands: Id | int) -> Id:
        numbers = [operand.number if isinstance(operand, Id) else operand for operand in operands]
        return self._numbered(opcode, kind, (opcode, type, *numbers))

    def _numbered(self, opcode: int, kind: Kind, key: tuple[int, ...]) -> Id:
        """Returns the result of an instruction with this opcode, type, and numbers of operands."""
        # ``known`` written out: most of the time of writing a kernel is spent here.
        for scope in reversed(self._scopes):
            result = scope.get(key)
            if result is not None:
                break
        else:
            result = Id(self, self.declarations.fresh(), kind)
            self._body += (opcode | len(key) + 1 << 16, key[1], result.number, *key[2:])
            if opcode in _ROUNDED and not self.contracts:
                self.declarations.decorate(result.number, Decoration.NoContraction)
            self._scopes[-1][key] = result
        assert isinstance(result, Id)
        return result

    def written(self, opcode: int, kind: Kind, *operands: Id) -> Id:
        """Writes an impure instruction and returns its result."""
        result = Id(self, self.declarations.fresh(), kind)
        numbers = (operand.number for operand in operands)
        self._body += encode(opcode, self.declarations.type(kind), result.number, *numbers)
        return result

    def write(self, opcode: int, *operands: Id) -> None:
        """Writes an instruction without a result."""
        self._body += encode(opcode, *(operand.number for operand in operands))

    def binary(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id:
        """Returns the result of a binary instruction: folded where operands are known, with known facts of integers."""
        if left.kind == U32 and opcode in RULES and (left.value is None or right.value is None):
            result = RULES[opcode](self, left, right)
            if result is not None:
                return result
        return self.plain(opcode, kind, left, right)

    def plain(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id:
        """Returns the result of a binary instruction, folded where its operands are known."""
        if left.value is not None or right.value is not None:
            result = folded(opcode, kind.bits, left.kind.bits, left.value, right.value)
            if isinstance(result, int):
                return self.constant_bits(kind, result)
            if result is not None:
                return left if result is Operands.LEFT else right
        return self._numbered(opcode, kind, (opcode, self.declarations.type(kind), left.number, right.number))

    def shuffled(self, value: Id, lane: Id) -> Id:
        """Returns another invocation's value; all invocations of the subgroup must be active."""
        self.declarations.require("GroupNonUniformShuffle")
        return self.emit(Op.GroupNonUniformShuffle, value.kind, self.word(SUBGROUP), value, lane)

    def extended(self, instruction: int, kind: Kind, *operands: Id) -> Id:
        """Returns the result of a GLSL.std.450 instruction."""
        return self.emit(Op.ExtInst, kind, self.declarations.extended, instruction, *operands)

    def pair(self, opcode: int, left: Id, right: Id) -> tuple[Id, Id]:
        """Returns the low and high word of an extended product, or sum and carry: the members of a
        two-word structure.
        """
        structure = self.declarations.type_of(Op.TypeStruct, self.declarations.type(U32), self.declarations.type(U32))
        key = (opcode, left.number, right.number)
        number = self.known(key)
        if number is None:
            number = self.declarations.fresh()
            self._body += encode(opcode, structure, number, left.number, right.number)
            self.keep(key, number)
        return self.emit(Op.CompositeExtract, U32, number, 0), self.emit(Op.CompositeExtract, U32, number, 1)

    # -- memory ----------------------------------------------------------------------------------------

    def buffer(self, binding: int, name: str, is_written: bool, is_shared: bool = False) -> int:
        """Declares a storage buffer of words in set 0; a shared one may alias another buffer's memory."""
        access = Decoration.NonReadable if is_written else Decoration.NonWritable
        return self.declarations.buffer(binding, name, Decoration.Aliased if is_shared else access)

    def place(self, storage: int, kind: Kind, variable: int, *indices: Id) -> Id:
        """Returns a pointer to a part of a variable."""
        pointer = self.declarations.pointer(storage, self.declarations.type(kind))
        return self._emit(Op.AccessChain, pointer, _POINTER, variable, *indices)

    def parameter(self, number: int, count: int) -> Id:
        """Returns a push constant, one of ``count`` 32-bit words."""
        return self.emit(
            Op.Load,
            U32,
            self.place(StorageClass.PushConstant, U32, self.declarations.push_constants(count), self.word(number)),
        )

    def load(self, buffer: int, index: Id) -> Id:
        """Loads a word of a read-only buffer."""
        self.loaded.add(buffer)
        known = self.known(("loaded", buffer, index.number))
        if known is not None:
            assert isinstance(known, Id)
            return known
        return self.emit(Op.Load, U32, self.place(StorageClass.StorageBuffer, U32, buffer, self.word(0), index))

    def load_at(self, kind: Kind, address: Id) -> Id:
        """Loads a value at a device address; each component is aligned to its size."""
        self.declarations.require("PhysicalStorageBufferAddresses", "SPV_KHR_physical_storage_buffer")
        type = self.declarations.pointer(StorageClass.PhysicalStorageBuffer, self.declarations.type(kind))
        pointer = self._emit(Op.ConvertUToPtr, type, _POINTER, address)
        return self.emit(Op.Load, kind, pointer, _ALIGNED, kind.bits // 8)

    def load_ahead(self, buffer: int, first: Id, width: int) -> None:
        """Loads 2, 4 or 8 neighbouring words of a buffer at once; later loads of these words are free.

        Args:
            buffer: the buffer to read.
            first: the index of the first word, a multiple of ``width``.
            width: the number of words.
        """
        pair = Kind("u", 32, 2)
        kind = Kind("u", 64, width // 2) if width > 4 else Kind("u", 32, width)
        vector = self.load_vector(kind, buffer, quotient(first, width))
        for position in range(width):
            if width > 4:
                both = self.emit(Op.CompositeExtract, U64, vector, position // 2).bits(pair)
                word = self.emit(Op.CompositeExtract, U32, both, position % 2)
            else:
                word = self.emit(Op.CompositeExtract, U32, vector, position)
            self.keep(("loaded", buffer, (first + position).number), word)

    def _place_of(self, kind: Kind, buffer: int, index: Id) -> Id:
        return self.place(StorageClass.StorageBuffer, kind, self.declarations.view(buffer, kind), self.word(0), index)

    def store(self, buffer: int, index: Id, value: Id) -> None:
        """Writes a word of a buffer."""
        pointer = self.place(StorageClass.StorageBuffer, U32, buffer, self.word(0), index)
        self.write(Op.Store, pointer, value)

    def store_wide(self, buffer: int, first: Id, values: Sequence[Id]) -> None:
        """Writes 2 or 4 neighbouring words of a buffer at once; ``first`` is a multiple of their count."""
        kind = Kind("u", 32, len(values))
        pointer = self._place_of(kind, buffer, quotient(first, len(values)))
        self.write(Op.Store, pointer, self.emit(Op.CompositeConstruct, kind, *values))

    def atomic(self, opcode: int, buffer: int, index: Id, value: Id) -> Id:
        """Updates a word of a buffer by an atomic instruction such as ``AtomicIAdd``, and returns the old value."""
        pointer = self.place(StorageClass.StorageBuffer, U32, buffer, self.word(0), index)
        return self.written(opcode, U32, pointer, self.word(_DEVICE), self.word(_RELAXED), value)

    def load_atomic(self, buffer: int, index: Id) -> Id:
        """Atomically loads a word that other invocations may change."""
        pointer = self.place(StorageClass.StorageBuffer, U32, buffer, self.word(0), index)
        return self.written(Op.AtomicLoad, U32, pointer, self.word(_DEVICE), self.word(_RELAXED))

    def load_again(self, buffer: int, index: Id) -> Id:
        """Loads a word of a buffer that this invocation has written."""
        pointer = self.place(StorageClass.StorageBuffer, U32, buffer, self.word(0), index)
        return self.written(Op.Load, U32, pointer)

    def load_vector(self, kind: Kind, buffer: int, index: Id) -> Id:
        """Loads a vector of words, or of pairs of words, of a read-only buffer; ``index`` counts vectors."""
        self.loaded.add(buffer)
        return self.emit(Op.Load, kind, self._place_of(kind, buffer, index))

    # -- other invocations of the workgroup ------------------------------------------------------------

    def barrier(self) -> None:
        """Waits for all invocations of the workgroup, and makes their writes to shared memory visible."""
        scope = self.word(_WORKGROUP)
        self.write(Op.ControlBarrier, scope, scope, self.word(_SHARED_IN_ORDER))

    def exchanged(self, value: Id, distance: int) -> Id:
        """Returns the value of the invocation whose subgroup index is this one's, XORed with a distance."""
        self.declarations.require("GroupNonUniformShuffle")
        return self.written(Op.GroupNonUniformShuffleXor, value.kind, self.word(SUBGROUP), value, self.word(distance))

    def lookup(self, table: Sequence[int], index: Id) -> Id:
        """Returns a word of a constant table; zero for an empty table, which only unreachable code reads."""
        if not table:
            return self.word(0)
        if index.value is not None:
            return self.word(table[index.value])
        if len(set(table)) == 1:
            return self.word(table[0])
        return self.emit(Op.Load, U32, self.place(StorageClass.Private, U32, self.declarations.table(table), index))

    def subgroup(self) -> Id:
        """Returns the index of the subgroup in its workgroup."""
        self.declarations.require("GroupNonUniform")
        return self.emit(Op.Load, U32, self.declarations.input(U32, BuiltIn.SubgroupId))

    def built_in(self, name: str) -> tuple[Id, Id, Id]:
        """Returns the three components of ``WorkgroupId``, ``LocalInvocationId``, …"""
        vector = Kind("u", 32, 3)
        loaded = self.emit(Op.Load, vector, self.declarations.input(vector, getattr(BuiltIn, name)))
        x, y, z = (self.emit(Op.CompositeExtract, U32, loaded, index) for index in range(3))
        return x, y, z

    # -- control flow ----------------------------------------------------------------------------------

    def _block(self, label: int) -> None:
        self._body += encode(Op.Label, label)
        self._label = label

    def conditional(
        self, condition: Id, then: Callable[[], Sequence[Id]], otherwise: Callable[[], Sequence[Id]]
    ) -> list[Id]:
        """Returns the values of ``then`` or ``otherwise``, each of which runs in a block of its own."""
        if condition.value is not None:
            return list(then() if condition.value else otherwise())
        first, second, merge = self.declarations.fresh(), self.declarations.fresh(), self.declarations.fresh()
        self._body += encode(Op.SelectionMerge, merge, 0)
        self._body += encode(Op.BranchConditional, condition.number, first, second)
        sides: list[tuple[Sequence[Id], int]] = []
        for label, function in ((first, then), (second, otherwise)):
            self._block(label)
            self._scopes.append({})
            values = [value.here for value in function()]
            self._scopes.pop()
            sides.append((values, self._label))
            self._body += encode(Op.Branch, merge)
        self._block(merge)
        (left, left_label), (right, right_label) = sides
        results = []
        for a, b in zip(left, right, strict=True):
            if a.number == b.number:
                results.append(a)
                continue
            results.append(Id(self, self.declarations.fresh(), a.kind))
            phi = (self.declarations.type(a.kind), results[-1].number, a.number, left_label, b.number, right_label)
            self._body += encode(Op.Phi, *phi)
        return results

    def when(self, condition: Id, run: Callable[[], None]) -> None:
        """Runs a function's instructions only where a condition holds."""

        def then() -> Sequence[Id]:
            run()
            return ()

        self.conditional(condition, then, lambda: ())

    def loop(
        self,
        starts: Sequence[Id],
        step: Callable[[Sequence[Id]], tuple[Sequence[Id], Id]],
        *,
        ends_at_head: bool = True,
    ) -> list[Id]:
        """Runs ``step`` at least once, and again while the condition that it returns holds; returns the last values.

        Args:
            starts: the values before.
            step: a function that writes one iteration.
            ends_at_head: whether the condition is asked before the next iteration; after the body, some drivers lose
                values (``repair/loop_exits.py``).
        """
        starts = [*(start.here for start in starts), self.boolean(True)]
        header, body, latch, merge = (self.declarations.fresh() for _ in range(4))
        before = self._label
        self._body += encode(Op.Branch, header)
        self._block(header)
        values = [Id(self, self.declarations.fresh(), start.kind) for start in starts]
        back_edges = []
        for value, start in zip(values, starts, strict=True):
            back_edges.append(len(self._body) + 5)
            type = self.declarations.type(value.kind)
            self._body += encode(Op.Phi, type, value.number, start.number, before, 0, latch)
        self._body += encode(Op.LoopMerge, merge, latch, 0)
        *results, is_repeated = values
        if ends_at_head:
            self._body += encode(Op.BranchConditional, is_repeated.number, body, merge)
        else:
            self._body += encode(Op.Branch, body)
        self._block(body)
        self._scopes.append({})
        after, condition = step(results)
        *changed, again = (variable.here for variable in (*after, condition))
        self._scopes.pop()
        for position, value in zip(back_edges, (*changed, again), strict=True):
            self._body[position] = value.number
        self._body += encode(Op.Branch, latch)
        self._block(latch)
        if ends_at_head:
            self._body += encode(Op.Branch, header)
        else:
            self._body += encode(Op.BranchConditional, again.number, header, merge)
        self._block(merge)
        return results if ends_at_head else changed

    # -- the module ------------------------------------------------------------------------------------

    def finish(self, name: str, workgroup_size: tuple[int, int, int]) -> bytes:
        """Returns the module, with an entry point of this name."""
        return self.declarations.module(name, workgroup_size, self._first_label, self._body)
