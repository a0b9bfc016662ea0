"""Types of values. Each type exists once, so equal types are the same object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Self, TypeAlias
from weakref import WeakValueDictionary

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...base.locks import RLock
from .sizes import Dim, product

_PUBLISHING: Final = RLock()


class Type:
    """A type; ``str()`` returns its MLIR text."""

    __slots__ = ("__weakref__", "_text")
    _existing: Final[WeakValueDictionary[tuple[object, ...], Type]] = WeakValueDictionary()
    _text: str

    @classmethod
    def _find(cls, *key: object) -> Self | None:
        """Returns the type of this class with this key, if it exists."""
        return Type._existing.get((cls, *key))  # type: ignore[return-value]

    def _publish(self, *key: object) -> Self:
        """Returns the only type of this class with this key: this type, unless another thread was first."""
        with _PUBLISHING:
            first = self._find(*key)
            if first is None:
                Type._existing[(type(self), *key)] = first = self
            return first

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


_FLOATS: Final = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": getattr(ml_dtypes, "float8_e4m3", None),
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E3M4": getattr(ml_dtypes, "float8_e3m4", None),
    "f8E8M0FNU": getattr(ml_dtypes, "float8_e8m0fnu", None),
    "f6E2M3FN": getattr(ml_dtypes, "float6_e2m3fn", None),
    "f6E3M2FN": getattr(ml_dtypes, "float6_e3m2fn", None),
    "f4E2M1FN": getattr(ml_dtypes, "float4_e2m1fn", None),
}
_INTEGERS: Final = {
    ("", 1): np.bool_,
    ("", 2): getattr(ml_dtypes, "int2", None),
    ("u", 2): getattr(ml_dtypes, "uint2", None),
    ("", 4): ml_dtypes.int4,
    ("u", 4): ml_dtypes.uint4,
    **{("", bits): np.dtype(f"int{bits}").type for bits in (8, 16, 32, 64)},
    **{("u", bits): np.dtype(f"uint{bits}").type for bits in (8, 16, 32, 64)},
}
_INTEGER: Final = re.compile(r"(s|u|)i([0-9]{1,7})", re.ASCII)
_FLOAT_BITS: Final = re.compile(r"[a-z]+([0-9]+)", re.ASCII)


class ScalarType(Type):
    """An element type: ``f32``, ``i1``, ``ui8``, ``bf16``, ``complex<f32>``, ``index``, ``none``.

    Attributes:
        kind: ``bool``, ``int``, ``uint``, ``float``, ``complex``, ``index`` or ``none``. Signless integers are ``int``,
            as in StableHLO.
        bits: the number of bits in an element; 64 for ``index``.
    """

    __slots__ = ("_dtype", "bits", "kind")
    kind: str
    bits: int
    _dtype: npt.DTypeLike | None

    def __new__(cls, name: str) -> Self:
        """Returns the scalar type of a name.

        Raises:
            ValueError: no scalar type has that name.
        """
        existing = cls._find(name)
        if existing is not None:
            return existing
        self = object.__new__(cls)
        self._text = name
        self.kind, self.bits, self._dtype = _described(name)
        return self._publish(name)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype of elements.

        Raises:
            ValueError: NumPy has none, as for ``i33`` and ``none``.
        """
        if self._dtype is None:
            raise ValueError(f"{self} has no NumPy dtype")
        return np.dtype(self._dtype)

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer of either sign or ``index``, but not ``i1``."""
        return self.kind in ("int", "uint", "index")

    @property
    def part(self) -> ScalarType:
        """The type of a complex number's parts; the type itself for other types."""
        return ScalarType(self._text[8:-1]) if self.kind == "complex" else self


def _described(name: str) -> tuple[str, int, Any]:
    if name == "i1":
        return "bool", 1, np.bool_
    if name == "index":
        return "index", 64, np.int64
    if name == "none":
        return "none", 0, None
    if name in ("complex<f32>", "complex<f64>"):
        bits = 2 * int(name[9:11])
        return "complex", bits, np.dtype(f"complex{bits}")
    if name in _FLOATS:
        match = _FLOAT_BITS.match(name)
        assert match is not None
        return "float", int(match[1]), _FLOATS[name]
    integer = _INTEGER.fullmatch(name)
    if integer is None or int(integer[2]) == 0:
        raise ValueError(f"there is no type {name}")
    sign, bits = integer[1].replace("s", ""), int(integer[2])
    return f"{sign}int", bits, _INTEGERS.get((sign, bits))


class ShapedType(Type):
    """A shape and an element type.

    Attributes:
        shape: the lengths of the dimensions; None for ``?`` in the program's text, and a ``Size`` once
            ``passes/dynamic/resolve.py`` has derived the length from those of the arguments.
        element: the type of the elements.
        encoding: the text of the encoding attribute, or empty.
    """

    __slots__ = ("_count", "_lengths", "element", "encoding", "shape")
    keyword = ""
    shape: tuple[Dim | None, ...]
    element: Type
    encoding: str
    _count: Dim | None
    _lengths: tuple[Dim, ...]

    def __new__(cls, shape: Sequence[Dim | None], element: Type, encoding: str = "") -> Self:
        existing = cls._find(tuple(shape), element, encoding)
        if existing is not None:
            return existing
        self = object.__new__(cls)
        self.shape, self.element, self.encoding = tuple(shape), element, encoding
        # Passes read these often.
        self._lengths, self._count = tuple(length for length in shape if length is not None), None
        dims = "".join("?x" if length is None else f"{length}x" for length in shape)
        self._text = f"{cls.keyword}<{dims}{element}{', ' + encoding if encoding else ''}>"
        return self._publish(tuple(shape), element, encoding)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether all lengths are numbers."""
        return all(isinstance(length, int) for length in self.shape)

    @property
    def lengths(self) -> tuple[Dim, ...]:
        """The shape, which must be free of ``?``.

        Raises:
            ValueError: a length is not known.
        """
        if len(self._lengths) != len(self.shape):
            raise ValueError(f"{self} has lengths that are not known")
        return self._lengths

    @property
    def count(self) -> Dim:
        """The number of elements; the shape must be free of ``?``."""
        if self._count is None:
            self._count = product(self.lengths)
        return self._count

    @property
    def scalar(self) -> ScalarType:
        """The element type if it is a scalar type, as in all programs without quantization.

        Raises:
            ValueError: the element type is not scalar, such as a quantized type.
        """
        if not isinstance(self.element, ScalarType):
            raise ValueError(f"elements of type {self.element} are not scalars")
        return self.element

    def of(self, element: Type) -> Self:
        """Returns the type of the same shape with another element type."""
        return type(self)(self.shape, element)


class TensorType(ShapedType):
    """A tensor by value."""

    __slots__ = ()
    keyword = "tensor"


class MemRefType(ShapedType):
    """A buffer that holds a tensor."""

    __slots__ = ()
    keyword = "memref"


class VectorType(ShapedType):
    """A vector in a shader."""

    __slots__ = ()
    keyword = "vector"


class TupleType(Type):
    """A tuple of values."""

    __slots__ = ("elements",)
    elements: tuple[Type, ...]

    def __new__(cls, elements: Sequence[Type]) -> Self:
        existing = cls._find(tuple(elements))
        if existing is not None:
            return existing
        self = object.__new__(cls)
        self.elements = tuple(elements)
        self._text = f"tuple<{types_text(elements)}>"
        return self._publish(tuple(elements))


class FunctionType(Type):
    """The types of a function's arguments and results."""

    __slots__ = ("inputs", "results")
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __new__(cls, inputs: Sequence[Type], results: Sequence[Type]) -> Self:
        existing = cls._find(tuple(inputs), tuple(results))
        if existing is not None:
            return existing
        self = object.__new__(cls)
        self.inputs, self.results = tuple(inputs), tuple(results)
        result_text = str(results[0]) if len(results) == 1 else f"({types_text(results)})"
        if len(results) == 1 and isinstance(results[0], FunctionType):
            result_text = f"({result_text})"
        self._text = f"({types_text(inputs)}) -> {result_text}"
        return self._publish(tuple(inputs), tuple(results))


class DialectType(Type):
    """A type of a dialect that is kept verbatim: ``!stablehlo.token``, ``!quant.uniform<…>``."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        existing = cls._find(text)
        if existing is not None:
            return existing
        self = object.__new__(cls)
        self._text = text
        return self._publish(text)


Types: TypeAlias = Sequence[Type]


def types_text(types: Types) -> str:
    """Returns types, separated by commas."""
    return ", ".join(map(str, types))


F32: Final = ScalarType("f32")
F64: Final = ScalarType("f64")
I1: Final = ScalarType("i1")
I32: Final = ScalarType("i32")
I64: Final = ScalarType("i64")
INDEX: Final = ScalarType("index")
