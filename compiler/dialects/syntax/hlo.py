"""Syntax of StableHLO's operations. MHLO's are read as StableHLO's.

The forms are those of StableHLO 1.x (``stablehlo/dialect/StablehloOps.td`` and ``AssemblyFormat.cpp``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.attributes import Attribute, DenseArray, EnumAttr, IntegerAttr, SymbolRef, attribute_text
from ...ir.operation import Operation
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.sizes import Dim
from ...ir.syntax import CustomSyntax, Syntax, finished, kind_text, syntax_of, typed_parts, types_after_colon
from ...ir.types import I32, I64, ShapedType
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
    "concatenate": "% dim=dimension:i64 {} :fn",
    "create_token": "{} :give",
    "dot": "% ?precision=precision_config:enums.precision {} :fn",
    "dynamic_broadcast_in_dim": "% dims=broadcast_dimensions:ints {} :fn",
    "dynamic_iota": "% dim=iota_dimension:i64 {} :fn",
    "dynamic_slice": "% sizes=slice_sizes:ints {} :fn",
    "einsum": "% config=einsum_config:string {} :fn",
    "fft": "% type=fft_type:enum.fft_type length=fft_length:ints {} :fn",
    "get_dimension_size": "% dim=dimension:i64 {} :fn",
    "iota": "dim=iota_dimension:i64 {} :give",
    "optimization_barrier": "% {} :each",
    "pad": "% low=edge_padding_low:ints high=edge_padding_high:ints interior=interior_padding:ints {} :fn",
    "partition_id": "{} :give",
    "replica_id": "{} :give",
    "return": "% {} :take",
    "reverse": "% dims=dimensions:ints {} :same",
    "rng": "% distribution=rng_distribution:enum.rng_distribution {} :fn",
    "rng_bit_generator": "% algorithm=rng_algorithm:enum.rng_algorithm {} :fn",
    "set_dimension_size": "% dim=dimension:i64 {} :fn",
    "torch_index_select": "% dim=dim:i64 batch_dims=batch_dims:i64 {} :fn",
    "trace": "% tag=tag:string {} :take",
    "transpose": "% dims=permutation:ints {} :fn",
    "unary_einsum": "% config=einsum_config:string {} :fn",
}


def _parse_compare(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {"comparison_direction": _enum(parser, "comparison_direction")}
    parser.expect(",")
    names = parser.operand_names()
    if parser.accept(","):
        attributes["compare_type"] = _enum(parser, "comparison_type")
    return typed_parts(parser, names, attributes, "fn")


def _enum(parser: Parser, kind: str) -> EnumAttr:
    return EnumAttr("stablehlo", kind, parser.word(f"a {kind.replace('_', ' ')}"))


def _print_compare(printer: Printer, operation: Operation) -> str:
    direction = kind_text("enum", operation.attributes["comparison_direction"])
    text = f"{direction}, {printer.operands(operation.operands)}"
    if "compare_type" in operation.attributes:
        text += f", {kind_text('enum', operation.attributes['compare_type'])}"
    return finished(printer, operation, text, ("comparison_direction", "compare_type"), "fn")


def _parse_select(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attributes_before_types()
    if parser.at("("):
        type = parser.function_type()
        return Parts(parser.operands(names, type.inputs), type.results, attributes, [])
    types = parser.types()
    if len(types) != 2:
        parser.error(f"expected the type of the predicate and that of the result, got {len(types)} types")
    return Parts(parser.operands(names, [types[0], types[1], types[1]]), [types[1]], attributes, [])


def _print_select(printer: Printer, operation: Operation) -> str:
    predicate, first, second = (value.type for value in operation.operands)
    result = operation.results[0].type
    types = f": {predicate}, {result}" if first is second is result else types_after_colon(operation, "fn")
    others = printer.dictionary(operation)
    return " ".join(filter(None, (printer.operands(operation.operands), others, types)))


def _parse_complex(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attributes_before_types()
    if parser.at("("):
        type = parser.function_type()
        return Parts(parser.operands(names, type.inputs), type.results, attributes, [])
    type_ = parser.type()
    if not isinstance(type_, ShapedType) or type_.scalar.kind != "complex":
        parser.error(f"expected a tensor of complex numbers, got {type_}")
    return Parts(parser.operands(names, [type_.of(type_.scalar.part)] * len(names)), [type_], attributes, [])


def _print_complex(printer: Printer, operation: Operation) -> str:
    return finished(printer, operation, printer.operands(operation.operands), (), "give")


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


def _parse_custom_call(parser: Parser, name: str) -> Parts:
    target = parser.symbol()
    return typed_parts(parser, parser.enclosed_names(), {"call_target_name": target}, "fn")


def _print_custom_call(printer: Printer, operation: Operation) -> str:
    target = attribute_text(SymbolRef(str(operation.attributes["call_target_name"])))
    text = f"{target}({printer.operands(operation.operands)})"
    return finished(printer, operation, text, ("call_target_name",), "fn")


def _parse_composite(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {"name": parser.string()}
    return typed_parts(parser, parser.operand_names(), attributes, "fn")


def _print_composite(printer: Printer, operation: Operation) -> str:
    text = " ".join(filter(None, (printer.attribute(operation, "name"), printer.operands(operation.operands))))
    return finished(printer, operation, text, ("name",), "fn")


def _parse_tuple(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attributes_before_types()
    type = parser.type()
    elements = getattr(type, "elements", None)
    if elements is None:
        parser.error(f"expected a tuple type, got {type}")
    return Parts(parser.operands(names, elements), [type], attributes, [])


def _parse_element(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect("[")
    attributes: dict[str, Attribute] = {"index": IntegerAttr(parser.integer(), I32)}
    parser.expect("]")
    return typed_parts(parser, names, attributes, "fn")


def _print_element(printer: Printer, operation: Operation) -> str:
    text = f"{printer.operands(operation.operands)}[{operation.integer('index')}]"
    return finished(printer, operation, text, ("index",), "fn")


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
    "compare": CustomSyntax(_parse_compare, _print_compare),
    "complex": CustomSyntax(_parse_complex, _print_complex),
    "composite": CustomSyntax(_parse_composite, _print_composite),
    "constant": CONSTANT,
    "custom_call": CustomSyntax(_parse_custom_call, _print_custom_call),
    "get_tuple_element": CustomSyntax(_parse_element, _print_element),
    "reduce_precision": CustomSyntax(_parse_precision, _print_precision),
    "select": CustomSyntax(_parse_select, _print_select),
    "slice": CustomSyntax(_parse_slice, _print_slice),
    "tuple": CustomSyntax(_parse_tuple, _print_complex),
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
