"""Radix sorts, lowest digit first, for comparisons of one number per element.

A pass is stable. Its elements are split into chunks, one for each invocation. First the digits of each chunk are
counted. Sums of the counts, digit by digit and then chunk by chunk, give the position where each chunk's elements of a
digit begin. Then invocations read their chunks again and move each element to its position. A pass is a sort of all
elements by a digit, with two more operands that are not sorted: the attribute ``given`` is their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...analysis.scans import Scan
from ...analysis.special_forms import GIVEN, IN_ORDER, chunk_of
from ...dialects.builder import Builder, Values
from ...ir.attributes import DenseElements, EnumAttr, IntegerAttr, attribute_text
from ...ir.copying import copy_operations
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.types import I64, ScalarType, TensorType
from ...kernels.scalars.target import Target
from ..canonical.legacy import IN_MEMORY, over_tensors
from .building import joining, narrowed, scattered, shape_of, widened
from .scans import scanned

FAMILIES: Final = frozenset({"cpu"})
"""Families of devices on which a radix pass is faster than the merges that it saves."""

MIN_LENGTH: Final = 1 << 17
"""Shorter rows are merged faster."""

DIGIT: Final = 8
"""Bits of a digit."""

CHUNKS: Final = 256
"""The number of chunks, unless they would be too long."""

MAX_CHUNK: Final = 1 << 15
"""The most elements of a chunk, over which an invocation loops."""

_WORD = ScalarType("ui32")


def sorted_by_digits(builder: Builder, operation: Operation, target: Target) -> Values | None:
    """Sorts one long row by a number per element; returns None for other sorts."""
    shape = tensor_of(operation.operands[0]).lengths
    body = operation.regions[0].block
    length = max((dimension for dimension in shape if isinstance(dimension, int)), default=0)
    compared = _compared(body)
    if target.family not in FAMILIES or "reference" in target.kinds:
        return None
    if compared is None or any(dimension not in (1, length) for dimension in shape):
        return None
    if list(shape).count(length) != 1 or shape[operation.integer("dimension", -1)] != length or length < MIN_LENGTH:
        return None
    bits = tensor_of(compared[0]).scalar.bits
    elements = [tensor_of(value).scalar for value in operation.operands]
    values: Values = [builder.reshape(widened(builder, value), (length,)) for value in operation.operands]
    for shift in range(0, max(bits, DIGIT), DIGIT):
        values = _pass(builder, body, values, elements, shift)
    return [
        builder.reshape(narrowed(builder, value, element), shape)
        for value, element in zip(values, elements, strict=True)
    ]


def _pass(builder: Builder, body: Block, values: Values, elements: Sequence[ScalarType], shift: int) -> Values:
    """Sorts by one digit."""
    (length,) = tensor_of(values[0]).lengths
    assert isinstance(length, int)
    chunks = -(-length // chunk_of(length, max(CHUNKS, -(-length // MAX_CHUNK))))
    chunk, places = chunk_of(length, chunks), 1 << DIGIT
    # The digit's position is read from memory, so that all passes share their kernels.
    number = DenseElements.of(shift, TensorType((), _WORD))
    distance = builder.append("constant", (), [number.type], {"value": number, IN_MEMORY: True}).result

    def digits_of(inner: Builder, digits: Values) -> Value:
        narrow = [narrowed(inner, value, element) for value, element in zip(digits, elements, strict=True)]
        key = _ordered(inner, body, narrow)
        by = inner.broadcast(distance, tensor_of(key).lengths, ())
        return inner.elementwise("and", inner.elementwise("shift_right_logical", key, by), places - 1)

    def compare(inner: Builder, pairs: Values) -> Value:
        return inner.compare("LT", digits_of(inner, pairs[::2]), digits_of(inner, pairs[1::2]))

    padded = builder.lengthen(digits_of(builder, values), 0, chunk * chunks - length, places)
    zeros = builder.constant(0, TensorType((chunks, places), _WORD))
    ones = builder.constant(1, TensorType((chunks, chunk), _WORD))
    # Digits beyond the last element are ignored.
    (counts,) = scattered(builder, joining(builder, "add", _WORD), padded, [ones], [zeros], {IN_ORDER: True}, 1)
    turned = builder.transpose(counts, (1, 0))
    before = _sums_before(builder, turned)
    last = [builder.piece(before, 1, chunks - 1, chunks), builder.piece(counts, 0, chunks - 1, chunks)]
    totals = builder.elementwise("add", *(builder.reshape(count, (places,)) for count in last))
    firsts = builder.broadcast(_sums_before(builder, totals), (places, chunks), (0,))
    starts = builder.elementwise("add", before, firsts)
    others = [digits_of(builder, values), starts]
    return builder.sort(values, 0, compare, {GIVEN: IntegerAttr(len(others), I64)}, others)


def _sums_before(builder: Builder, value: Value) -> Value:
    """Returns the exclusive running sum of each row."""
    shape = shape_of(value)
    scan = Scan(shape, len(shape) - 1, is_reverse=False, is_exclusive=True)
    zero = builder.constant(0, TensorType((), _WORD))
    return scanned(builder, joining(builder, "add", _WORD), [value], [zero], scan.axis, scan)[0]


def _compared(body: Block) -> tuple[Value, Value] | None:
    """Returns the two compared numbers, if each is the same function of one element; else None."""
    last = body.terminator.operands[0].owner
    if not isinstance(last, Operation) or last.name != "stablehlo.compare":
        return None
    left, right = last.operands
    element = tensor_of(left).scalar
    known = element.kind in ("int", "uint") or (element.kind == "float" and element.bits in (16, 32))
    direction = last.attributes["comparison_direction"]
    if not known or not 8 <= element.bits <= 32 or not isinstance(direction, EnumAttr):
        return None
    if direction.case not in ("LT", "GT"):
        return None
    numbers: dict[object, int] = {}
    first, second = (_forms(body, side, numbers) for side in range(2))
    alike = [(first.get(left), second.get(right)), (second.get(left), first.get(right))]
    return (
        (left, right)
        if any(left_form is not None and left_form == right_form for left_form, right_form in alike)
        else None
    )


def _forms(body: Block, side: int, numbers: dict[object, int]) -> dict[Value, int]:
    """Numbers the values of a comparison that depend on one side only; equal values get equal numbers.

    ``numbers`` holds the numbers assigned so far. Each value is visited once, as the number of paths from a value to an
    element may be exponential.
    """
    forms = {
        item: numbers.setdefault(item.index // 2, len(numbers)) for item in body.arguments if item.index % 2 == side
    }
    for operation in body.operations[:-1]:
        operands = [forms.get(item) for item in operation.operands]
        if not operation.regions and len(operation.results) == 1 and None not in operands:
            attributes = sorted((name, attribute_text(item)) for name, item in operation.attributes.items())
            form = operation.name, str(operation.result.type), str(attributes), *operands
            forms[operation.result] = numbers.setdefault(form, len(numbers))
    return forms


def _ordered(builder: Builder, body: Block, values: Values) -> Value:
    """Maps each element to an unsigned number that has the order of a comparison."""
    compare = body.terminator.operands[0].owner
    assert isinstance(compare, Operation)
    compared = _compared(body)
    assert compared is not None
    left = compared[0]
    # A block that returns the left number; here both arguments are the same element.
    block = Block([argument.type for argument in body.arguments])
    inside = dict(zip(body.arguments, block.arguments, strict=True))
    copy_operations(body.operations[:-1], block, inside)
    block.append(Operation("stablehlo.return", [inside[left]]))
    (key,) = over_tensors(builder, block, [value for value in values for _ in range(2)])
    element = tensor_of(key).scalar
    sign = 1 << (element.bits - 1)
    bits = key if element.kind == "uint" else builder.bitcast(key, ScalarType(f"ui{element.bits}"))
    bits = builder.convert(bits, _WORD)
    if element.kind == "int":
        bits = builder.elementwise("xor", bits, sign)
    elif element.kind == "float":
        kind = compare.attributes.get("compare_type")
        if not (isinstance(kind, EnumAttr) and kind.case == "TOTALORDER"):
            bits = builder.select(builder.compare("EQ", bits, sign), 0, bits)
        is_negative = builder.compare("GE", bits, sign)
        whole = (1 << element.bits) - 1
        bits = builder.select(
            is_negative, builder.elementwise("xor", bits, whole), builder.elementwise("xor", bits, sign)
        )
    direction = compare.attributes["comparison_direction"]
    assert isinstance(direction, EnumAttr)
    is_swapped = left not in _forms(body, 0, {})
    if (direction.case == "GT") != is_swapped:
        bits = builder.elementwise("xor", bits, (1 << element.bits) - 1)
    return bits
