"""Loads and stores for the eight invocations of a subgroup at once, on devices with subgroups of one CPU vector.

A driver on a CPU loads for one invocation after another, unless it proves that the address is uniform. It can prove
this for values computed from push constants, but not for a workgroup's number. So the numbers of workgroups and
subgroups are looked up in push constants, four bits at a time, among the words 0 to 15. A load from such an address
uses the device address, without a bounds check. Eight neighbouring words, one per invocation, become one vector load.
Stores go through descriptors: shuffles pass each pair of words to all invocations, which store it to a uniform address.

Vulkan requires a push constant's index to be uniform within the workgroup; a subgroup's number is uniform only within
the subgroup. This departure from the specification works only on devices with ``Target.whole_vectors``: there a
subgroup is one vector of a CPU, and an index is looked up for that vector.

All of this applies to code outside of branches and loops, where all invocations are active; elsewhere words are loaded
and stored one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...spirv.binary.declarations import U32, U64, Kind
from ...spirv.binary.expression import Id
from ...spirv.binary.grammar import BuiltIn, Op, StorageClass
from ...spirv.binary.offsets import quotient
from .scalars.lengths import KernelBuilder

if TYPE_CHECKING:
    from ...spirv.binary.expression import Arithmetic

WIDTH: Final = 8
"""Invocations of a subgroup."""

PUSHED_NUMBERS: Final = 16
"""The number of words after the addresses in the push constants: 0 to 15."""

MAX_BINDINGS: Final = 8
"""The most bindings of a kernel: devices have at least 128 bytes of push constants."""

LOAD_WORDS: Final = 32
"""The estimated words of code of a vector load."""

_QUAD: Final = Kind("u", 32, 4)
_PAIR: Final = Kind("u", 32, 2)
_UMIN: Final = 38


class Spread(Id):
    """An index that grows by one per invocation of a subgroup; it is emitted only where an instruction uses it.

    Attributes:
        first: the uniform index of the first invocation.
    """

    __slots__ = ("first",)

    def __init__(self, first: Id) -> None:
        self.builder: Arithmetic = first.builder
        self.kind = U32
        self.value: int | None = None
        self.first: Id = first

    def __getattr__(self, name: str) -> Any:
        # The id stays unset: the instruction may stand in a block that does not dominate the next use.
        if name not in ("number", "start", "distance", "multiple", "run"):
            raise AttributeError(name)
        return getattr(self.here, name)

    @property
    def here(self) -> Id:
        """The result of an instruction in this block, or in a dominating block."""
        assert isinstance(self.builder, SubgroupBuilder)
        return self.builder.written_out(self)

    @property
    def key(self) -> object:
        """A key that is equal for equal indices."""
        return "spread", self.first.key


class SubgroupBuilder(KernelBuilder):
    """A builder for kernels of static lengths that load and store vectors per subgroup.

    Args:
        bindings: the number of bindings of the kernel.
    """

    pushes_addresses = True

    def __init__(self, bindings: int) -> None:
        super().__init__()
        self._address_words = 2 * bindings
        self._bindings: dict[int, int] = {}
        self._same: set[int] = set()

    def buffer(self, binding: int, name: str, is_written: bool, is_shared: bool = False) -> int:
        """Declares a storage buffer and records its binding, which determines its address."""
        buffer = super().buffer(binding, name, is_written, is_shared)
        self._bindings[buffer] = binding
        return buffer

    # -- uniform values ----------------------------------------------------------------------------------

    def same(self, number: Id, count: int) -> Id:
        """Returns a subgroup-uniform number below ``count`` in a form that the driver recognises as uniform."""
        result = self.word(0)
        for shift in range(0, max(count - 1, 1).bit_length(), 4):
            digit = self._pushed((number >> shift) % PUSHED_NUMBERS + self._address_words)
            self._same.add(digit.number)
            result = result + digit * (1 << shift)
        return result

    def least(self, left: Id, right: int, multiple: int) -> Id:
        """Returns the smaller of two numbers, both multiples of ``multiple``, a power of two."""
        result = self.extended(_UMIN, U32, left, self.word(right))
        result.multiple = multiple
        if self._is_same(left):
            self._same.add(result.number)
        return result

    def spread(self, first: Id) -> Id:
        """Returns the index that is ``first`` for a subgroup's first invocation and grows by one per invocation."""
        assert self._is_same(first)
        return Spread(first)

    def written_out(self, index: Spread) -> Id:
        """Emits the instruction of an index."""
        return self.plain(Op.IAdd, U32, index.first, self._lane())

    def binary(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id:
        """Emits a binary instruction, and keeps the structure of indices."""
        if kind == U32 and (isinstance(left, Spread) or isinstance(right, Spread)):
            result = self._of_spread(opcode, left, right)
            if result is not None:
                return result
        return super().binary(opcode, kind, left, right)

    def plain(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id:
        """Emits a binary instruction; its result is uniform if both operands are."""
        result = super().plain(opcode, kind, left, right)
        if result.value is None and self._is_same(left) and self._is_same(right):
            self._same.add(result.number)
        return result

    def _of_spread(self, opcode: int, left: Id, right: Id) -> Id | None:
        if opcode == Op.IAdd:
            index, other = (left, right) if isinstance(left, Spread) else (right, left)
            if isinstance(index, Spread) and not isinstance(other, Spread) and self._is_same(other):
                return Spread(index.first + other)
        if opcode == Op.IMul and (left.value == 1 or right.value == 1):
            return left if isinstance(left, Spread) else right
        divisor = right.value or 0
        if isinstance(left, Spread) and divisor and divisor % WIDTH == 0 and left.first.multiple % WIDTH == 0:
            if opcode == Op.UMod:
                return Spread(left.first % divisor)
            if opcode == Op.UDiv:
                return left.first // divisor
        return None

    def _is_same(self, index: Id) -> bool:
        return not isinstance(index, Spread) and (index.value is not None or index.start.number in self._same)

    def _lane(self) -> Id:
        self.declarations.require("GroupNonUniform")
        return self.emit(Op.Load, U32, self.declarations.input(U32, BuiltIn.SubgroupLocalInvocationId))

    def _pushed(self, index: Id) -> Id:
        variable = self.declarations.push_array(self._address_words + PUSHED_NUMBERS)
        return self.emit(Op.Load, U32, self.place(StorageClass.PushConstant, U32, variable, self.word(0), index))

    # -- memory ----------------------------------------------------------------------------------------

    def load(self, buffer: int, index: Id) -> Id:
        """Loads a word of a buffer; neighbouring words come from vector loads."""
        self.loaded.add(buffer)
        if len(self._scopes) == 1:
            if isinstance(index, Spread):
                return self._load_spread(buffer, index)
            if self._is_same(index):
                return self.load_at(U32, self._address(buffer, index))
        return super().load(buffer, index)

    def _load_spread(self, buffer: int, index: Spread) -> Id:
        key = ("spread", buffer, index.first.number)
        loaded = self.known(key)
        if loaded is None:
            lane = self._lane()
            for half in range(0, WIDTH, 4):
                quad = self.load_at(_QUAD, self._address(buffer, index.first + half))
                for part in range(4):
                    word = self.emit(Op.CompositeExtract, U32, quad, part)
                    loaded = word if loaded is None else lane.equals(half + part).select(word, loaded)
            self.keep(key, loaded)
        assert isinstance(loaded, Id)
        return loaded

    def _address(self, buffer: int, index: Id) -> Id:
        """Computes the address of a word. The common part of indices is added first."""
        first = 2 * self._bindings[buffer]
        words = [self._pushed(self.word(first + part)) for part in range(2)]
        address = self.emit(Op.CompositeConstruct, _PAIR, *words).bits(U64)
        start, distance = (index.start, index.distance) if index.value is None else (self.word(0), index.value)
        if start.value is None:
            wide = self.emit(Op.UConvert, U64, start)
            address = self.emit(Op.IAdd, U64, address, self.emit(Op.IMul, U64, wide, self.constant_bits(U64, 4)))
        return self.emit(Op.IAdd, U64, address, self.constant_bits(U64, 4 * distance)) if distance else address

    def store_words(self, buffer: int, first: Id, words: Sequence[Id]) -> None:
        """Stores neighbouring words of a buffer, in pairs for a whole subgroup."""
        if len(self._scopes) > 1 or not isinstance(first, Spread) or len(words) != 1 or first.first.multiple % 2:
            super().store_words(buffer, first, words)
            return
        for lane in range(0, WIDTH, 2):
            both = [self.shuffled(words[0], self.word(lane + part)) for part in range(2)]
            pair = self.emit(Op.CompositeConstruct, _PAIR, *both).bits(U64)
            index = quotient(first.first + lane, 2)
            view = self.declarations.view(buffer, U64)
            self.write(Op.Store, self.place(StorageClass.StorageBuffer, U64, view, self.word(0), index), pair)
