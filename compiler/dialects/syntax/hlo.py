"""Syntax of StableHLO's operations, and of MHLO's, which are read as StableHLO's.

The forms are those of StableHLO 1.x (``stablehlo/dialect/StablehloOps.td`` and ``AssemblyFormat.cpp``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray, IntegerAttr
from ...ir.operation import Operation
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.sizes import Dim
from ...ir.syntax import CustomSyntax, Syntax, finished, syntax_of, typed_parts
from ...ir.types import I32, I64
from .builtin import CONSTANT
from .chlo import CHLO
from .hlo_bodies import BODY_SYNTAX
from .hlo_contractions import CONTRACTION_SYNTAX

_UNARY: Final = """
    abs cbrt ceil convert cosine count_leading_zeros exponential exponential_minus_one floor imag is_finite log
    log_plus_one logistic negate not popcnt real reshape round_nearest_afz round_nearest_even rsqrt sign sine
    sqrt tan tanh bitcast_convert uniform_quantize uniform_dequantize
"""
_BINARY: Final = """
    add and atan2 clamp complex divide maximum minimum multiply or power remainder shift_left
    shift_right_arithmetic shift_right_logical subtract xor
"""
_BY_FUNCTION: Final = """
    batch_norm_training dynamic_update_slice dynamic_reshape dynamic_pad real_dynamic_slice
"""
_FORMS: Final = {
    **dict.fromkeys(_UNARY.split(), "% {} :same"),
    **dict.fromkeys(_BINARY.split(), "% {} :same"),
    **dict.fromkeys(_BY_FUNCTION.split(), "% {} :fn"),
    "after_all": "% {} :same",
    "broadcast": "% sizes=broadcast_sizes:ints {} :fn",
    "broadcast_in_dim": "% dims=broadcast_dimensions:ints {} :fn",
    "cholesky": "% ?lower=lower:bool {} :same",
    "compare": "=comparison_direction:enum.comparison_direction % ?=compare_type:enum.comparison_type {} :fn",
    "complex": "% {} :parts",
    "concatenate": "% dim=dimension:i64 {} :fn",
    "create_token": "{} :give",
    "custom_call": "=call_target_name:symbol (%) {} :fn",
    "dot": "% ?precision=precision_config:enums.precision {} :fn",
    "dynamic_broadcast_in_dim": "% dims=broadcast_dimensions:ints {} :fn",
    "dynamic_iota": "% dim=iota_dimension:i64 {} :fn",
    "dynamic_slice": "% sizes=slice_sizes:ints {} :fn",
    "einsum": "% config=einsum_config:string {} :fn",
    "fft": "% type=fft_type:enum.fft_type length=fft_length:ints {} :fn",
    "get_dimension_size": "% dim=dimension:i64 {} :fn",
    "get_tuple_element": "% [=index:i32] {} :fn",
    "iota": "dim=iota_dimension:i64 {} :give",
    "optimization_barrier": "% {} :each",
    "pad": "% low=edge_padding_low:ints high=edge_padding_high:ints interior=interior_padding:ints {} :fn",
    "partition_id": "{} :give",
    "replica_id": "{} :give",
    "return": "% {} :take",
    "reverse": "% dims=dimensions:ints {} :same",
    "rng": "% distribution=rng_distribution:enum.rng_distribution {} :fn",
    "rng_bit_generator": "% algorithm=rng_algorithm:enum.rng_algorithm {} :fn",
    "select": "% {} :select",
    "set_dimension_size": "% dim=dimension:i64 {} :fn",
    "torch_index_select": "% dim=dim:i64 batch_dims=batch_dims:i64 {} :fn",
    "trace": "% tag=tag:string {} :take",
    "transpose": "% dims=permutation:ints {} :fn",
    "tuple": "% {} :tuple",
    "unary_einsum": "% config=einsum_config:string {} :fn",
}


_SLICE: Final = ("start_indices", "limit_indices", "strides")


def _parse_slice(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect("[")
    ranges: list[tuple[Dim, Dim, int]] = []
    for _ in parser.items("]"):
        start = parser.length()
        parser.expect(":")
        limit = parser.length()
        ranges.append((start, limit, parser.integer() if parser.accept(":") else 1))
    attributes: dict[str, Attribute] = {
        key: DenseArray(I64, tuple(item[index] for item in ranges)) for index, key in enumerate(_SLICE)
    }
    return typed_parts(parser, names, attributes, "fn")


def _print_slice(printer: Printer, operation: Operation) -> str:
    ranges = zip(*(operation.sizes(key) for key in _SLICE), strict=True)
    shown = ", ".join(f"{start}:{limit}" + (f":{stride}" if stride != 1 else "") for start, limit, stride in ranges)
    return finished(printer, operation, f"{printer.operands(operation.operands)} [{shown}]", _SLICE, "fn")


def _parse_composite(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {"name": parser.string()}
    return typed_parts(parser, parser.operand_names(), attributes, "fn")


def _print_composite(printer: Printer, operation: Operation) -> str:
    text = " ".join(filter(None, (printer.attribute(operation, "name"), printer.operands(operation.operands))))
    return finished(printer, operation, text, ("name",), "fn")


def _parse_precision(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    parser.expect(",")
    parser.expect_word("format")
    parser.expect("=")
    format = parser.word("a format such as e5m10")
    exponent, separator, mantissa = format.removeprefix("e").partition("m")
    if not (format.startswith("e") and separator and exponent.isdecimal() and mantissa.isdecimal()):
        parser.error(f"expected a format such as e5m10, got {format}")
    attributes: dict[str, Attribute] = {
        "exponent_bits": IntegerAttr(int(exponent[:9]), I32),
        "mantissa_bits": IntegerAttr(int(mantissa[:9]), I32),
    }
    return typed_parts(parser, names, attributes, "same")


def _print_precision(printer: Printer, operation: Operation) -> str:
    keys = ("exponent_bits", "mantissa_bits")
    format = f"e{operation.integer(keys[0])}m{operation.integer(keys[1])}"
    return finished(printer, operation, f"{printer.operands(operation.operands)}, format = {format}", keys, "same")


_SPECIAL: Final = {
    "composite": CustomSyntax(_parse_composite, _print_composite),
    "constant": CONSTANT,
    "reduce_precision": CustomSyntax(_parse_precision, _print_precision),
    "slice": CustomSyntax(_parse_slice, _print_slice),
}

_STABLEHLO: Final[Mapping[str, Syntax | CustomSyntax]] = {
    **{name: syntax_of(form) for name, form in _FORMS.items()},
    **_SPECIAL,
    **CONTRACTION_SYNTAX,
    **BODY_SYNTAX,
}

HLO: Final[Mapping[str, Syntax | CustomSyntax]] = {
    **{f"stablehlo.{name}": syntax for name, syntax in _STABLEHLO.items()},
    **{f"mhlo.{name}": syntax for name, syntax in _STABLEHLO.items()},
    **CHLO,
}
