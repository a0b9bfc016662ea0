"""Syntax of StableHLO's operations, and of CHLO's. MHLO's are read as StableHLO's.

The forms are those of StableHLO 1.x (``stablehlo/dialect/StablehloOps.td`` and ``AssemblyFormat.cpp``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..ir.attributes import (
    Attribute,
    DenseArray,
    EnumAttr,
    IntegerAttr,
    RawAttr,
    StructAttr,
    SymbolRef,
    attribute_text,
    convolution_text,
)
from ..ir.convolution import convolution_sides
from ..ir.operation import Block, Operation, Region
from ..ir.parser import Parser, Parts
from ..ir.printer import Printer
from ..ir.syntax import (
    CustomSyntax,
    Syntax,
    kind_text,
    parse_ints,
    parse_kind,
    parse_types,
    syntax_of,
    types_after_colon,
)
from ..ir.types import I1, I32, I64, ShapedType, TensorType, Type, types_text
from .builtin import CONSTANT

_UNARY: Final = [
    "abs",
    "cbrt",
    "ceil",
    "convert",
    "cosine",
    "count_leading_zeros",
    "exponential",
    "exponential_minus_one",
    "floor",
    "imag",
    "is_finite",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "not",
    "popcnt",
    "real",
    "reshape",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sine",
    "sqrt",
    "tan",
    "tanh",
    "bitcast_convert",
    "uniform_quantize",
    "uniform_dequantize",
]
_BINARY: Final = [
    "add",
    "and",
    "atan2",
    "clamp",
    "complex",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "or",
    "power",
    "remainder",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
]
_BY_FUNCTION: Final = [
    "batch_norm_training",
    "dynamic_update_slice",
    "dynamic_reshape",
    "dynamic_pad",
    "real_dynamic_slice",
]
_CHLO: Final = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "asin_acos_kernel",
    "atan",
    "atanh",
    "bessel_i1e",
    "conj",
    "constant_like",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "is_inf",
    "is_neg_inf",
    "is_pos_inf",
    "lgamma",
    "next_after",
    "polygamma",
    "sinh",
    "square",
    "tan",
    "zeta",
    "broadcast_add",
    "broadcast_and",
    "broadcast_atan2",
    "broadcast_complex",
    "broadcast_divide",
    "broadcast_maximum",
    "broadcast_minimum",
    "broadcast_multiply",
    "broadcast_next_after",
    "broadcast_or",
    "broadcast_polygamma",
    "broadcast_power",
    "broadcast_remainder",
    "broadcast_select",
    "broadcast_shift_left",
    "broadcast_shift_right_arithmetic",
    "broadcast_shift_right_logical",
    "broadcast_subtract",
    "broadcast_xor",
    "broadcast_zeta",
]

_FORMS: Final = {
    **dict.fromkeys(_UNARY, "% {} :same"),
    **dict.fromkeys(_BINARY, "% {} :same"),
    **dict.fromkeys(_BY_FUNCTION, "% {} :fn"),
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
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, attributes, [])


def _enum(parser: Parser, kind: str) -> EnumAttr:
    return EnumAttr("stablehlo", kind, parser.word(f"a {kind.replace('_', ' ')}"))


def _print_compare(printer: Printer, operation: Operation) -> str:
    direction = kind_text("enum", operation.attributes["comparison_direction"])
    text = f"{direction}, {printer.operands(operation.operands)}"
    if "compare_type" in operation.attributes:
        text += f", {kind_text('enum', operation.attributes['compare_type'])}"
    return _finish(printer, operation, text, ("comparison_direction", "compare_type"), "fn")


def _finish(printer: Printer, operation: Operation, text: str, shown: Sequence[str], types: str) -> str:
    others = printer.dictionary(operation, shown)
    return " ".join(filter(None, (text, others, types_after_colon(operation, types))))


def _parse_select(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attribute_dictionary()
    parser.expect(":")
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
    attributes = parser.attribute_dictionary()
    parser.expect(":")
    if parser.at("("):
        type = parser.function_type()
        return Parts(parser.operands(names, type.inputs), type.results, attributes, [])
    type_ = parser.type()
    if not isinstance(type_, ShapedType) or type_.scalar.kind != "complex":
        parser.error(f"expected a tensor of complex numbers, got {type_}")
    return Parts(parser.operands(names, [type_.of(type_.scalar.part)] * len(names)), [type_], attributes, [])


def _print_complex(printer: Printer, operation: Operation) -> str:
    others = printer.dictionary(operation)
    return " ".join(filter(None, (printer.operands(operation.operands), others, f": {operation.results[0].type}")))


_SLICE: Final = ("start_indices", "limit_indices", "strides")


def _parse_slice(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect("[")
    ranges: list[tuple[int, int, int]] = []
    while not parser.accept("]"):
        start = parser.integer()
        parser.expect(":")
        limit = parser.integer()
        ranges.append((start, limit, parser.integer() if parser.accept(":") else 1))
        if not parser.accept(","):
            parser.expect("]")
            break
    attributes: dict[str, Attribute] = {
        key: DenseArray(I64, tuple(item[index] for item in ranges)) for index, key in enumerate(_SLICE)
    }
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, attributes, [])


def _print_slice(printer: Printer, operation: Operation) -> str:
    ranges = zip(*(operation.integers(key) for key in _SLICE), strict=True)
    shown = ", ".join(f"{start}:{limit}" + (f":{stride}" if stride != 1 else "") for start, limit, stride in ranges)
    return _finish(printer, operation, f"{printer.operands(operation.operands)} [{shown}]", _SLICE, "fn")


_DOT: Final = "stablehlo.dot"


def _parse_dot_general(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    fields: dict[str, object] = {}
    attributes: dict[str, Attribute] = {}
    while parser.accept(","):
        key = parser.word("batching_dims, contracting_dims, precision or algorithm")
        parser.expect("=")
        if key in ("batching_dims", "contracting_dims"):
            kind = key.removesuffix("_dims")
            fields[f"lhs_{kind}_dimensions"] = parse_ints(parser)
            parser.expect("x")
            fields[f"rhs_{kind}_dimensions"] = parse_ints(parser)
        elif key == "precision":
            attributes["precision_config"] = parse_kind(parser, "enums.precision")
        elif key == "algorithm":
            attributes["algorithm"] = parser.struct("stablehlo.dot_algorithm")
        else:
            parser.error(f"expected batching_dims, contracting_dims, precision or algorithm, got {key}")
    lists = {f"{side}_{kind}_dimensions": () for kind in ("batching", "contracting") for side in ("lhs", "rhs")}
    attributes = {"dot_dimension_numbers": StructAttr(_DOT, lists | fields), **attributes}
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, attributes, [])


def _print_dot_general(printer: Printer, operation: Operation) -> str:
    numbers = operation.attributes["dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    items = [printer.operands(operation.operands)]
    for kind in ("batching", "contracting"):
        sides = [list(numbers.ints(f"{side}_{kind}_dimensions")) for side in ("lhs", "rhs")]
        if sides[0] or sides[1] or kind == "contracting":
            items.append(f"{kind}_dims = {sides[0]} x {sides[1]}")
    if "precision_config" in operation.attributes:
        items.append(f"precision = {kind_text('enums.precision', operation.attributes['precision_config'])}")
    if "algorithm" in operation.attributes:
        items.append(f"algorithm = {str(operation.attributes['algorithm']).removeprefix('#stablehlo.dot_algorithm')}")
    shown = ("dot_dimension_numbers", "precision_config", "algorithm")
    return _finish(printer, operation, ", ".join(items), shown, "fn")


_WINDOW: Final = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _parse_convolution(parser: Parser, name: str) -> Parts:
    parser.expect("(")
    names = parser.operand_names()
    parser.expect(")")
    parser.expect_word("dim_numbers")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"dimension_numbers": convolution_sides(parser, "stablehlo.conv")}
    parser.expect(",")
    parser.expect_word("window")
    parser.expect("=")
    parser.expect("{")
    while not parser.accept("}"):
        key = parser.word("a field of the window")
        parser.expect("=")
        if key not in _WINDOW:
            parser.error(f"expected one of {', '.join(_WINDOW)}, got {key}")
        value = parser.attribute()
        attributes[_WINDOW[key]] = _pairs(value) if key == "pad" else _array(value)
        if not parser.accept(","):
            parser.expect("}")
            break
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, attributes, [])


def _array(value: Attribute) -> Attribute:
    items = value if isinstance(value, tuple) else ()
    if items and all(isinstance(item, bool) for item in items):
        return DenseArray(I1, tuple(bool(item) for item in items))
    return DenseArray(I64, tuple(item.value for item in items if isinstance(item, IntegerAttr)))


def _pairs(value: Attribute) -> Attribute:
    return tuple(_array(item) for item in value) if isinstance(value, tuple) else value


def _print_convolution(printer: Printer, operation: Operation) -> str:
    numbers = operation.attributes["dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    window = []
    for key, name in _WINDOW.items():
        value = operation.attributes.get(name)
        if value is not None:
            window.append(f"{key} = {_window_text(value)}")
    text = f"({printer.operands(operation.operands)}) dim_numbers = {convolution_text(numbers.fields)}"
    shown = ("dimension_numbers", *_WINDOW.values())
    return _finish(printer, operation, f"{text}, window = {{{', '.join(window)}}}", shown, "fn")


def _window_text(value: Attribute) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_window_text, value))}]"
    if isinstance(value, DenseArray):
        return f"[{', '.join(str(item).lower() for item in value.values)}]"
    array = getattr(value, "array", None)
    return attribute_text(value) if array is None else str(array.tolist())


def _parse_reduce(parser: Parser, name: str) -> Parts:
    inputs: list[tuple[str, int]] = []
    starts: list[tuple[str, int]] = []
    while True:
        parser.expect("(")
        inputs.append(parser.operand_name())
        parser.expect_word("init")
        parser.expect(":")
        starts.append(parser.operand_name())
        parser.expect(")")
        if not parser.accept(","):
            break
    inner = ""
    if parser.accept_word("applies"):
        inner = parser.word("an operation")
    parser.expect_word("across")
    parser.expect_word("dimensions")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, parse_ints(parser))}
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, inputs + starts, "fn")
    if inner:
        region = _applied(inner, operands[0].tensor.element)
    else:
        parser.expect_word("reducer")
        firsts: list[tuple[str, Type, int]] = []
        seconds: list[tuple[str, Type, int]] = []
        while parser.at("("):
            first, second = parser.arguments()
            firsts.append(first)
            seconds.append(second)
        region = parser.region(firsts + seconds)
    return Parts(operands, results, attributes, [region])


def _applied(name: str, element: Type) -> Region:
    """A region that applies one operation to its two arguments."""
    type = TensorType((), element)
    block = Block([type, type])
    made = block.append(Operation(name, block.arguments, [type]))
    block.append(Operation("stablehlo.return", made.results))
    return Region([block])


def _print_reduce(printer: Printer, operation: Operation) -> str:
    count = len(operation.results)
    pairs = zip(operation.operands[:count], operation.operands[count:], strict=True)
    text = ", ".join(f"({printer.value(value)} init: {printer.value(start)})" for value, start in pairs)
    block = operation.regions[0].block
    dimensions = f"across dimensions = {kind_text('ints', operation.attributes['dimensions'])}"
    if _is_applied(block, operation.operands[0].tensor.element):
        return _finish(
            printer, operation, f"{text} applies {block.operations[0].name} {dimensions}", ("dimensions",), "fn"
        )
    head = _finish(printer, operation, f"{text} {dimensions}", ("dimensions",), "fn")
    arguments = []
    for first, second in zip(block.arguments[:count], block.arguments[count:], strict=True):
        named = f"{printer.argument(first)}: {first.type}, {printer.argument(second)}: {second.type}"
        arguments.append(f"({named})")
    return f"{head} reducer{' '.join(arguments)} {printer.region(operation.regions[0])}"


def _is_applied(block: Block, element: Type) -> bool:
    if len(block.operations) != 2 or len(block.arguments) != 2:
        return False
    inner, last = block.operations
    return (
        list(inner.operands) == block.arguments
        and not inner.attributes
        and not inner.regions
        and list(last.operands) == inner.results
        and block.arguments[0].type is inner.results[0].type is TensorType((), element)
    )


def _parse_while(parser: Parser, name: str) -> Parts:
    names: list[tuple[str, int]] = []
    starts: list[tuple[str, int]] = []
    parser.expect("(")
    while not parser.accept(")"):
        names.append(parser.operand_name())
        parser.expect("=")
        starts.append(parser.operand_name())
        if not parser.accept(","):
            parser.expect(")")
            break
    types = parser.types() if parser.accept(":") else []
    attributes = parser.attribute_dictionary() if parser.accept_word("attributes") else {}
    operands = parser.operands(starts, types)
    arguments = [(name, type, offset) for (name, offset), type in zip(names, types, strict=True)]
    parser.expect_word("cond")
    condition = parser.region(arguments)
    parser.expect_word("do")
    return Parts(operands, types, attributes, [condition, parser.region(arguments)])


def _print_while(printer: Printer, operation: Operation) -> str:
    condition, body = operation.regions
    arguments = [printer.argument(value, "iterArg") for value in condition.block.arguments]
    printer.alias(body.block.arguments, condition.block.arguments)
    pairs = ", ".join(
        f"{name} = {printer.value(value)}" for name, value in zip(arguments, operation.operands, strict=True)
    )
    types = f" : {types_text([value.type for value in operation.operands])}" if operation.operands else ""
    others = printer.dictionary(operation)
    text = f"({pairs}){types}{f' attributes {others}' if others else ''}"
    return f"{text}\n{printer.indent}cond {printer.region(condition)} do {printer.region(body)}"


def _parse_custom_call(parser: Parser, name: str) -> Parts:
    target = parser.symbol()
    parser.expect("(")
    names = parser.operand_names()
    parser.expect(")")
    attributes = parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, {"call_target_name": target, **attributes}, [])


def _print_custom_call(printer: Printer, operation: Operation) -> str:
    target = attribute_text(SymbolRef(str(operation.attributes["call_target_name"])))
    text = f"{target}({printer.operands(operation.operands)})"
    return _finish(printer, operation, text, ("call_target_name",), "function")


def _parse_composite(parser: Parser, name: str) -> Parts:
    attributes: dict[str, Attribute] = {"name": parser.string()}
    names = parser.operand_names()
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, attributes, [])


def _print_composite(printer: Printer, operation: Operation) -> str:
    text = " ".join(filter(None, (printer.attribute(operation, "name"), printer.operands(operation.operands))))
    return _finish(printer, operation, text, ("name",), "function")


def _parse_tuple(parser: Parser, name: str) -> Parts:
    names = parser.operand_names()
    attributes = parser.attribute_dictionary()
    parser.expect(":")
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
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "fn")
    return Parts(operands, results, attributes, [])


def _print_element(printer: Printer, operation: Operation) -> str:
    text = f"{printer.operands(operation.operands)}[{operation.integer('index')}]"
    return _finish(printer, operation, text, ("index",), "fn")


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
        **parser.attribute_dictionary(),
    }
    operands, results = parse_types(parser, names, "same")
    return Parts(operands, results, attributes, [])


def _print_precision(printer: Printer, operation: Operation) -> str:
    keys = ("exponent_bits", "mantissa_bits")
    format = f"e{operation.integer(keys[0])}m{operation.integer(keys[1])}"
    return _finish(printer, operation, f"{printer.operands(operation.operands)}, format = {format}", keys, "same")


def _parse_top_k(parser: Parser, name: str) -> Parts:
    parser.expect("(")
    names = [parser.operand_name()]
    parser.expect(",")
    parser.expect_word("k")
    parser.expect("=")
    attributes: dict[str, Attribute] = {"k": IntegerAttr(parser.integer(), I64)}
    if parser.accept(","):
        parser.expect_word("is_stable")
        parser.expect("=")
        attributes["is_stable"] = parser.word("true or false") == "true"
    parser.expect(")")
    attributes |= parser.attribute_dictionary()
    operands, results = parse_types(parser, names, "arrow")
    return Parts(operands, results, attributes, [])


def _print_top_k(printer: Printer, operation: Operation) -> str:
    text = f"({printer.operands(operation.operands)}, k = {operation.integer('k')}"
    if "is_stable" in operation.attributes:
        text += f", is_stable = {printer.attribute(operation, 'is_stable')}"
    return _finish(printer, operation, text + ")", ("k", "is_stable"), "arrow")


def _parse_sharding(parser: Parser, name: str) -> Parts:
    names = [parser.operand_name()]
    parser.expect("<")
    attributes: dict[str, Attribute] = {"sharding": RawAttr(f"#sdy.sharding<{parser.balanced('>')}>")}
    operands, results = parse_types(parser, names, "same")
    return Parts(operands, results, attributes, [])


def _print_sharding(printer: Printer, operation: Operation) -> str:
    sharding = printer.attribute(operation, "sharding").removeprefix("#sdy.sharding")
    return f"{printer.operands(operation.operands)} {sharding} : {operation.results[0].type}"


def _parse_mesh(parser: Parser, name: str) -> Parts:
    symbol = parser.symbol()
    parser.expect("=")
    parser.expect("<")
    attributes: dict[str, Attribute] = {"sym_name": symbol, "mesh": RawAttr(f"<{parser.balanced('>')}>")}
    return Parts([], [], attributes | parser.attribute_dictionary(), [])


def _print_mesh(printer: Printer, operation: Operation) -> str:
    others = printer.dictionary(operation, {"sym_name", "mesh"})
    text = f"@{operation.attributes['sym_name']} = {printer.attribute(operation, 'mesh')}"
    return f"{text} {others}" if others else text


_SPECIAL: Final = {
    "compare": CustomSyntax(_parse_compare, _print_compare),
    "complex": CustomSyntax(_parse_complex, _print_complex),
    "composite": CustomSyntax(_parse_composite, _print_composite),
    "constant": CONSTANT,
    "convolution": CustomSyntax(_parse_convolution, _print_convolution),
    "custom_call": CustomSyntax(_parse_custom_call, _print_custom_call),
    "dot_general": CustomSyntax(_parse_dot_general, _print_dot_general),
    "get_tuple_element": CustomSyntax(_parse_element, _print_element),
    "reduce": CustomSyntax(_parse_reduce, _print_reduce),
    "reduce_precision": CustomSyntax(_parse_precision, _print_precision),
    "select": CustomSyntax(_parse_select, _print_select),
    "slice": CustomSyntax(_parse_slice, _print_slice),
    "tuple": CustomSyntax(_parse_tuple, _print_complex),
    "while": CustomSyntax(_parse_while, _print_while),
}

_STABLEHLO: Final[Mapping[str, Syntax | CustomSyntax]] = {
    **{name: syntax_of(form) for name, form in _FORMS.items()},
    **_SPECIAL,
}

HLO: Final[Mapping[str, Syntax | CustomSyntax]] = {
    **{f"stablehlo.{name}": syntax for name, syntax in _STABLEHLO.items()},
    **{f"mhlo.{name}": syntax for name, syntax in _STABLEHLO.items()},
    **{f"chlo.{name}": syntax_of("% {} :arrow") for name in _CHLO},
    "chlo.constant": CONSTANT,
    "chlo.top_k": CustomSyntax(_parse_top_k, _print_top_k),
    "sdy.sharding_constraint": CustomSyntax(_parse_sharding, _print_sharding),
    "sdy.mesh": CustomSyntax(_parse_mesh, _print_mesh),
}
