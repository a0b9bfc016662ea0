"""The specification's operations by type: which there are, which tests show them, and how exact they are.

``docs/reference/stablehlo.md`` is written from this table, and the tests named in it take their operations from here.
A kind of type is a letter: ``b`` i1, ``s`` signed and ``u`` unsigned integers, ``n`` floats of fewer than 32 bits,
``w`` f32 and f64, ``c`` complex numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "b": ("i1",),
    "s": ("i2", "i4", "i8", "i16", "i32", "i64"),
    "u": ("ui2", "ui4", "ui8", "ui16", "ui32", "ui64"),
    "n": (
        *("f16", "bf16", "f8E5M2", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E4M3B11FNUZ", "f8E4M3", "f8E3M4"),
        *("f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN"),
    ),
    "w": ("f32", "f64"),
    "c": ("complex<f32>", "complex<f64>"),
}
ANY: Final = "bsunwc"
TYPES: Final = tuple(type for types in KINDS.values() for type in types)


def kind_of(type: str) -> str:
    """The letter of a type."""
    return next(kind for kind, types in KINDS.items() if type in types)


@dataclass(frozen=True, slots=True)
class Row:
    """An operation.

    Attributes:
        name: without the dialect.
        kinds: of operands' elements in the specification.
        ulps: by kind, how far the last place of a result may be off; 0 where nothing is said. Complex numbers are off
            by multiples of the precision of their parts, relative to the modulus.
        arity: operands of an element-wise operation.
        without: types of these kinds for which there is nothing to show, and why.
    """

    name: str
    kinds: str
    ulps: Mapping[str, float] = field(default_factory=dict)
    arity: int = 0
    without: Mapping[str, str] = field(default_factory=dict)

    def types(self) -> Iterator[str]:
        """All types that are shown."""
        for kind in ANY:
            if kind in self.kinds:
                yield from (type for type in KINDS[kind] if type not in self.without)


_FUNCTION: Final = {"n": 1.0, "w": 3.0, "c": 4.0}
_POWER: Final = {"n": 1.0, "w": 3.0, "c": 256.0}

NO_ZERO: Final = {"f8E8M0FNU": "the type has no zero"}

ELEMENTWISE: Final = (
    Row("abs", "snwc", {"c": 2.0}, 1),
    Row("add", ANY, {}, 2),
    Row("and", "bsu", {}, 2),
    # The formula cancels where a complex result is small.
    Row("atan2", "nwc", {**_FUNCTION, "c": 1024.0}, 2),
    Row("cbrt", "nwc", _FUNCTION, 1),
    Row("ceil", "nw", {}, 1),
    Row("compare", ANY, {}, 2),
    Row("cosine", "nwc", _FUNCTION, 1),
    Row("count_leading_zeros", "su", {}, 1),
    Row("divide", "sunwc", {"c": 4.0}, 2),
    Row("exponential", "nwc", _FUNCTION, 1),
    Row("exponential_minus_one", "nwc", _FUNCTION, 1),
    Row("floor", "nw", {}, 1),
    Row("imag", "nwc", {}, 1, NO_ZERO),
    Row("is_finite", "nw", {}, 1),
    Row("log", "nwc", _FUNCTION, 1),
    Row("log_plus_one", "nwc", _FUNCTION, 1),
    Row("logistic", "nwc", _FUNCTION, 1),
    Row("maximum", ANY, {}, 2),
    Row("minimum", ANY, {}, 2),
    Row("multiply", ANY, {"c": 4.0}, 2),
    Row("negate", "sunwc", {}, 1),
    Row("not", "bsu", {}, 1),
    Row("or", "bsu", {}, 2),
    Row("popcnt", "su", {}, 1),
    Row("power", "sunwc", _POWER, 2),
    Row("real", "nwc", {}, 1),
    Row("remainder", "sunwc", {}, 2, dict.fromkeys(KINDS["c"], "the specification does not say what it is")),
    Row("round_nearest_afz", "nw", {}, 1),
    Row("round_nearest_even", "nw", {}, 1),
    Row("rsqrt", "nwc", _FUNCTION, 1),
    Row("shift_left", "su", {}, 2),
    Row("shift_right_arithmetic", "su", {}, 2),
    Row("shift_right_logical", "su", {}, 2),
    Row("sign", "snwc", {"c": 4.0}, 1),
    Row("sine", "nwc", _FUNCTION, 1),
    Row("sqrt", "nwc", _FUNCTION, 1),
    Row("subtract", "sunwc", {}, 2),
    Row("tan", "nwc", _FUNCTION, 1),
    Row("tanh", "nwc", _FUNCTION, 1),
    Row("xor", "bsu", {}, 2),
)


# -- the rest --------------------------------------------------------------------------------------------

_NAMES: Final = """
abs add after_all all_gather all_reduce all_to_all and async_done async_start atan2 batch_norm_grad
batch_norm_inference batch_norm_training bitcast_convert broadcast_in_dim case cbrt ceil cholesky clamp
collective_broadcast collective_permute collective_reduce compare complex composite concatenate constant convert
convolution cosine count_leading_zeros custom_call divide dot_general dynamic_broadcast_in_dim dynamic_conv
dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice exponential
exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag infeed iota is_finite log
log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or outfeed pad partition_id
popcnt power real recv reduce reduce_precision reduce_scatter reduce_window remainder replica_id reshape reverse
rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter send
shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh transpose
triangular_solve tuple uniform_dequantize uniform_quantize while xor
"""
SPECIFICATION: Final = tuple(_NAMES.split())
"""Every operation of the specification, in its order."""

REFUSED: Final[Mapping[str, str]] = dict.fromkeys(
    ("infeed", "outfeed", "recv", "send"), "refused: a module has arguments and results, and nobody else to talk to"
)
"""Operations that are refused by name, and why."""

UNTYPED: Final[Mapping[str, tuple[str, str]]] = {
    "after_all": ("tokens", "test_operations.py::test_one_device"),
    "custom_call": (
        "what the target takes; targets that are not known are refused",
        "test_operations.py::test_custom_calls",
    ),
    "uniform_dequantize": ("quantized", "test_operations.py::test_quantized"),
    "uniform_quantize": ("quantized", "test_operations.py::test_quantized"),
    "partition_id": ("`ui32`", "test_operations.py::test_one_device"),
    "replica_id": ("`ui32`", "test_operations.py::test_one_device"),
}
"""Operations whose operands are not of the types above: what they have, and the test."""
