"""VmList: the growable list that the VM's ``list.*`` operations work on (``!vm.list<…>``).

Facts from IREE's ``runtime/src/iree/vm/list.c`` and ``bytecode/dispatch.c``. The conversions between f32 and f64 came
with release 3.11 and ``VmList.get_ref``'s move with 3.10; before, such a get gave 0 and the move was a copy.

Thread rule: one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...status import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from .host_memory import ELEMENT_BYTES, OBJECT_BYTES, budgets, share_of
from .numerics import round_f32
from .ref_types import ANY_REF, ref_type_class, ref_type_name, register_ref_type

MAX_LIST_SIZE: int = 1 << 24
"""The maximum number of elements in a list.

``list.resize`` takes any 32-bit count from the program, and each element costs at least eight bytes here. Compiled
programs hold some dozens of buffers or shape dimensions in a list; larger sizes come only from errors or forged
modules, and fail with a status instead of exhausting memory.
"""

_BITS: Final = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
_FLOATS: Final = ("f32", "f64")
# The kinds of slots of a variant list other than numbers.
_REF: Final = "ref"
_EMPTY: Final = ""


def _convert(value: object, source: str, target: str) -> int | float:
    """Converts a stored number to another kind. There is no conversion between integers and floats: the result is 0."""
    bits = _BITS.get(target)
    if bits is not None:
        if not isinstance(value, int):
            return 0
        half = 1 << (bits - 1)
        return ((value + half) & ((half << 1) - 1)) - half
    if not isinstance(value, float):
        return 0.0
    return round_f32(value) if target == "f32" and source != "f32" else value


class VmList:
    """A list of elements of one kind, or of any kind.

    Attributes:
        element_kind: the kind: ``"i8"``, ``"i16"``, ``"i32"``, ``"i64"``, ``"f32"``, ``"f64"``, ``"ref:<type name>"``
            (such as ``"ref:hal.buffer"``) or ``"any"`` for a variant list, whose slots take numbers and references
            alike.

    Reading a number as another kind converts it: integers are truncated or sign-extended, floats are rounded or
    widened, and between integers and floats, as in IREE's runtime, the result is 0. Setting a number in a typed list
    converts it the same way; a slot of a variant list takes the kind of the value that is set.

    Indices are i32 words read as unsigned, as in the operations: a negative one is out of range.
    """

    __slots__ = ("_classes", "_kinds", "_share", "_values", "element_kind")

    def __init__(self, element_kind: str, initial_capacity: int = 0) -> None:
        """Creates an empty list. The capacity is only checked against the limit: Python lists grow by themselves.

        Raises:
            InvalidArgumentError: the element kind is unknown.
            NotFoundError: the reference type is not registered.
            ResourceExhaustedError: the capacity is above ``MAX_LIST_SIZE``.
        """
        self._classes: tuple[type, ...] | None = None
        if element_kind.startswith("ref:"):
            name = element_kind[4:]
            self._classes = ref_type_class(name)
            if self._classes is None:
                raise NotFoundError(
                    f"expected a registered reference type as list element, got {name!r}; register its module first"
                )
        elif element_kind != "any" and element_kind not in _BITS and element_kind not in _FLOATS:
            raise InvalidArgumentError(
                f"expected a list element kind i8, i16, i32, i64, f32, f64, ref:<type> or any, got {element_kind!r}"
            )
        self.element_kind: str = element_kind
        self._values: list[object] = []  # numbers and references; ``None`` is null or an empty variant slot
        self._kinds: list[str] = []  # in variant lists: the kind of each slot
        self._share = share_of(OBJECT_BYTES) if budgets else None
        self.reserve(initial_capacity)

    @classmethod
    def for_type(cls, type_text: str, initial_capacity: int = 0) -> VmList:
        """Returns an empty list for an element type as written in a type table; errors as the constructor's.

        ``"i32"`` and the like give lists of numbers, ``"!vm.opaque"`` and ``"?"`` variant lists, ``"!hal.buffer"``
        lists of that reference type, and every ``"!vm.list<…>"`` lists of lists of whatever kind.
        """
        bare = type_text.removeprefix("!")
        if bare in (ANY_REF, "?"):
            return cls("any", initial_capacity)
        if not type_text.startswith("!"):
            return cls(type_text, initial_capacity)
        return cls("ref:vm.list" if bare.startswith("vm.list") else f"ref:{bare}", initial_capacity)

    @classmethod
    def of(cls, element_kind: str, elements: Iterable[object]) -> VmList:
        """Returns a list with the given elements, for native modules.

        In a list of kind ``any``, Python ints become i64 and floats f64; everything else is a reference.

        Raises:
            InvalidArgumentError: the list rejects an element.
        """
        result = cls(element_kind)
        values = list(elements)
        result.resize(len(values))
        for index, element in enumerate(values):
            if isinstance(element, int):
                result.set_i64(index, element)
            elif isinstance(element, float):
                result.set_f64(index, element)
            else:
                result.set_ref(index, element)
        return result

    def size(self) -> int:
        """Returns the number of elements."""
        return len(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<VmList of {len(self._values)} {self.element_kind}>"

    def values(self) -> tuple[object, ...]:
        """Returns all elements; ``None`` for null references and empty variant slots."""
        return tuple(self._values)

    def kind_of(self, index: int) -> str:
        """Returns the kind of the slot at ``index``: ``"i32"`` and the like, ``"ref"``, or ``""`` if it is empty."""
        self._check_index(index)
        if self.element_kind == "any":
            return self._kinds[index]
        return _REF if self._classes is not None else self.element_kind

    # -------------------------------------------------------------------------------------------------------- size

    def reserve(self, minimum_capacity: int) -> None:
        """Raises ResourceExhaustedError if the list must not grow to this size (an i32 word read as unsigned)."""
        count = minimum_capacity & 0xFFFF_FFFF
        if count > MAX_LIST_SIZE:
            raise ResourceExhaustedError(
                f"a list of {count} elements is past the limit of {MAX_LIST_SIZE}; use a buffer, or raise "
                "pumice.vm.types.list.MAX_LIST_SIZE"
            )

    def resize(self, size: int) -> None:
        """Drops elements from the end, or appends zeros, nulls or empty variant slots.

        Raises:
            ResourceExhaustedError: as ``reserve`` does, or the program's limit is reached.
        """
        self.reserve(size)
        size &= 0xFFFF_FFFF
        kind = self.element_kind
        more = size - len(self._values)
        if budgets and self._share is None:
            self._share = share_of(OBJECT_BYTES)
        if self._share is not None:
            self._share.resize(OBJECT_BYTES + size * ELEMENT_BYTES)
        if more <= 0:
            del self._values[size:]
            del self._kinds[size:]
            return
        self._values.extend([0 if kind in _BITS else 0.0 if kind in _FLOATS else None] * more)
        if kind == "any":
            self._kinds.extend([_EMPTY] * more)

    def clear(self) -> None:
        """Drops every element."""
        self._values.clear()
        self._kinds.clear()

    # ----------------------------------------------------------------------------------------------------- numbers

    def _check_index(self, index: int) -> None:
        if not 0 <= index < len(self._values):
            raise OutOfRangeError(
                f"expected a list index below the size {len(self._values)}, got {index & 0xFFFF_FFFF}; resize it first"
            )

    def _get(self, index: int, target: str) -> int | float:
        self._check_index(index)
        kind = self.element_kind
        if kind == "any":
            kind = self._kinds[index]
            if kind in (_EMPTY, _REF):
                raise FailedPreconditionError(
                    f"expected a number at index {index} of the variant list, got "
                    f"{'an empty slot' if kind == _EMPTY else 'a reference'}"
                )
        elif self._classes is not None:
            raise FailedPreconditionError(f"expected a list of numbers, got one of {self.element_kind[4:]} references")
        return _convert(self._values[index], kind, target)

    def _set(self, index: int, value: int | float, source: str) -> None:
        self._check_index(index)
        kind = self.element_kind
        if kind == "any":
            self._kinds[index] = source
            self._values[index] = value
        elif self._classes is not None:
            raise FailedPreconditionError(f"expected a list of numbers, got one of {self.element_kind[4:]} references")
        else:
            self._values[index] = value if kind == source else _convert(value, source, kind)

    def get_i32(self, index: int) -> int:
        """Returns the number at ``index`` as an i32.

        Raises:
            OutOfRangeError: there is no such element.
            FailedPreconditionError: the list has references, or the variant slot has no number.
        """
        value = self._get(index, "i32")
        return value if isinstance(value, int) else 0

    def get_i64(self, index: int) -> int:
        """Returns the number at ``index`` as an i64; errors as ``get_i32``'s."""
        value = self._get(index, "i64")
        return value if isinstance(value, int) else 0

    def get_f32(self, index: int) -> float:
        """Returns the number at ``index`` as an f32; errors as ``get_i32``'s."""
        return float(self._get(index, "f32"))

    def get_f64(self, index: int) -> float:
        """Returns the number at ``index`` as an f64; errors as ``get_i32``'s."""
        return float(self._get(index, "f64"))

    def set_i32(self, index: int, value: int) -> None:
        """Sets a number from an i32.

        Raises:
            OutOfRangeError: there is no such element.
            FailedPreconditionError: the list has references.
        """
        self._set(index, value, "i32")

    def set_i64(self, index: int, value: int) -> None:
        """Sets a number from an i64; errors as ``set_i32``'s."""
        self._set(index, value, "i64")

    def set_f32(self, index: int, value: float) -> None:
        """Sets a number from an f32; errors as ``set_i32``'s."""
        self._set(index, value, "f32")

    def set_f64(self, index: int, value: float) -> None:
        """Sets a number from an f64; errors as ``set_i32``'s."""
        self._set(index, value, "f64")

    # -------------------------------------------------------------------------------------------------- references

    def get_ref(self, index: int, classes: tuple[type, ...] | None = None, *, move: bool = False) -> object:
        """Returns the reference at ``index``, or ``None`` if the slot is null, empty, or of another type.

        Args:
            classes: the Python classes of the requested type (``ref_types.ref_type_class``); ``None`` means any type.
                An empty tuple (a number's type) matches nothing, like ``!vm.opaque`` in IREE's runtime.
            move: whether to set the slot to null, even if the type did not match.

        Raises:
            OutOfRangeError: there is no such element.
            FailedPreconditionError: the list has numbers, or the variant slot has a number.
        """
        self._check_index(index)
        if self._classes is None:
            if self.element_kind != "any":
                raise FailedPreconditionError(f"expected a list of references, got one of {self.element_kind}")
            if self._kinds[index] not in (_EMPTY, _REF):
                raise FailedPreconditionError(
                    f"expected a reference at index {index} of the variant list, got a number of kind "
                    f"{self._kinds[index]}"
                )
            if move:
                self._kinds[index] = _EMPTY
        value = self._values[index]
        if move:
            self._values[index] = None
        return value if classes is None or isinstance(value, classes) else None

    def set_ref(self, index: int, value: object) -> None:
        """Sets a reference, or null (``None``), which leaves a variant slot empty.

        Raises:
            OutOfRangeError: there is no such element.
            FailedPreconditionError: the list has numbers.
            InvalidArgumentError: the list has another reference type.
        """
        self._check_index(index)
        classes = self._classes
        if classes is None:
            if self.element_kind != "any":
                raise FailedPreconditionError(f"expected a list of references, got one of {self.element_kind}")
            self._kinds[index] = _EMPTY if value is None else _REF
        elif value is not None and not isinstance(value, classes):
            raise InvalidArgumentError(
                f"expected a reference of type {self.element_kind[4:]} for the list, got {ref_type_name(value)}"
            )
        self._values[index] = value


register_ref_type("vm.list", VmList)
