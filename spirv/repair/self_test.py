"""The self-test of a driver: small kernels that compute each scalar operation with special values and constants.

Calling sequence: ``probes`` → run one workgroup of each kernel, with its inputs in binding 0 and room for
`Probe.result_bytes` in binding 1 → ``Probe.wrong_cases``. Nothing here calls Vulkan or depends on the driver's name.

Expected values come from Python's integers and floats. Only values that are exact in every width are used, apart from
quotients, which may be off by a part in a thousand: the specification allows inexact division, but not a number in
place of an infinity.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ..binary.builder import Builder
from ..binary.declarations import BOOL, F16, F32, F64, U8, U16, U32, U64, Kind
from ..binary.expression import Id
from ..binary.grammar import Op
from .driver_faults import DriverFault

Number = float | int
_LANES: Final = 8
_SHAPE: Final = {32: "I", 64: "Q"}
_FLOAT_SHAPE: Final = {32: "f", 64: "d"}
_ROUGHLY: Final = 1e-3
# PackHalf2x16 and UnpackHalf2x16 of GLSL.std.450.
_PACK_HALVES: Final = 58
_UNPACK_HALVES: Final = 62


class _Operation(NamedTuple):
    """A scalar operation: its opcode, or its number in GLSL.std.450, and the definition of its result."""

    number: int
    meaning: Callable[..., Number]
    is_extended: bool = False
    is_comparison: bool = False
    is_zero_signed: bool = True


class Case(NamedTuple):
    """One operation on the input and constants.

    Attributes:
        operation: the operation's name.
        operands: the constant operands, ``None`` for the input.
    """

    operation: str
    operands: tuple[Number | None, ...]


class Probe(NamedTuple):
    """A kernel that computes cases of one type.

    Attributes:
        fault: the fault that wrong results show.
        kind: the type of elements.
        code: the kernel, with the entry point ``main``.
        inputs: the content of binding 0.
        values: the inputs as numbers, one for each invocation.
        cases: in the order of the results.
    """

    fault: DriverFault
    kind: Kind
    code: bytes
    inputs: bytes
    values: Sequence[Number]
    cases: Sequence[Case]

    @property
    def result_bytes(self) -> int:
        """The size of binding 1."""
        return len(self.cases) * _LANES * _stored(self.kind).bits // 8

    def wrong_cases(self, results: bytes | memoryview) -> list[Case]:
        """Returns the cases with a wrong result in any invocation."""
        kind = _stored(self.kind)
        words = struct.unpack(f"<{len(self.cases) * _LANES}{_SHAPE[kind.bits]}", results)
        wrong = []
        for index, case in enumerate(self.cases):
            for value, bits in zip(self.values, words[index * _LANES : (index + 1) * _LANES], strict=True):
                if not _agrees(case, kind, value, bits):
                    wrong.append(case)
                    break
        return wrong


def probes(features: Collection[str]) -> Iterator[Probe]:
    """Yields the kernels that a device with these features can run."""
    yield _probe(DriverFault.SIGNED_MODULO, U32, _INTEGERS, _DIVISIONS)
    yield _probe(DriverFault.SPECIAL_CONSTANTS, F32, _FLOATS, _SPECIALS)
    yield _probe(DriverFault.NARROW_ROUNDING, F32, _NO_HALVES, _PACKED)
    yield _probe(DriverFault.LOOP_EXITS, U32, _INTEGERS, _LOOPS)
    for feature, kind in (("shaderInt8", U8), ("shaderInt16", U16)):
        if feature in features:
            yield _probe(DriverFault.SIGNED_MODULO, kind, _BYTES, _NARROW)
    if "shaderInt64" in features:
        yield _probe(DriverFault.SIGN_EXTENSION, U64, _INTEGERS, _COMPARISONS)
    if "shaderFloat16" in features:
        yield _probe(DriverFault.SPECIAL_CONSTANTS, F16, _FLOATS, _ZEROS)
    if "shaderFloat64" in features:
        yield _probe(DriverFault.SPECIAL_CONSTANTS, F64, _FLOATS, _ZEROS)
        yield _probe(DriverFault.NARROW_ROUNDING, F64, _NO_SINGLES, _NARROWED)
        yield _probe(DriverFault.DOUBLE_ROUNDING, F64, _FRACTIONS, _ROUNDINGS)


# -- kernels -------------------------------------------------------------------------------------------


def _probe(fault: DriverFault, kind: Kind, values: Sequence[Number], cases: Sequence[Case]) -> Probe:
    builder = Builder()
    source, result = builder.buffer(0, "inputs", False), builder.buffer(1, "results", True)
    lane = builder.built_in("LocalInvocationId")[0]
    value = _loaded(builder, source, lane, kind)
    stored = _stored(kind)
    words = stored.bits // 32
    for index, case in enumerate(cases):
        if case.operation == "load in a loop":
            value_of_case = _loaded_last(builder, source, lane)
        else:
            value_of_case = _computed(builder, kind, case, value)
        first = lane * words + index * _LANES * words
        for word, part in enumerate(_words(builder, stored, value_of_case)):
            builder.store(result, first + word, part)
    # Integers are stored as 32 bits; wider integers are converted.
    shape = "i" if kind.letter == "u" else _FLOAT_SHAPE[stored.bits]
    inputs = struct.pack(f"<{_LANES}{shape}", *values)
    return Probe(fault, kind, builder.finish("main", (_LANES, 1, 1)), inputs, values, cases)


def _stored(kind: Kind) -> Kind:
    """Returns the type in memory: devices with narrow types need not support storing them."""
    return F32 if kind == F16 else U32 if kind in (U8, U16) else kind


def _loaded(builder: Builder, source: int, lane: Id, kind: Kind) -> Id:
    if kind == F64:
        pair = builder.emit(
            Op.CompositeConstruct, Kind("u", 32, 2), *(builder.load(source, lane * 2 + word) for word in range(2))
        )
        return pair.bits(F64)
    word = builder.load(source, lane)
    if kind in (U8, U16, U64):
        return builder.emit(Op.SConvert, kind, word)
    return word if kind == U32 else word.bits(F32).convert(Op.FConvert, kind)


def _computed(builder: Builder, kind: Kind, case: Case, value: Id) -> Id:
    operation = _OPERATIONS[case.operation]
    operands = [value if operand is None else builder.constant(kind, operand) for operand in case.operands]
    if case.operation == "to int and back":
        return builder.emit(Op.ConvertSToF, kind, builder.emit(Op.ConvertFToS, U32, *operands))
    if case.operation == "differs from its half":
        pair = Kind("f", 32, 2)
        packed = builder.extended(_PACK_HALVES, U32, builder.emit(Op.CompositeConstruct, pair, value, value))
        half = builder.emit(Op.CompositeExtract, F32, builder.extended(_UNPACK_HALVES, pair, packed), 1)
        operands = [value, half]
    if case.operation == "differs from its f32":
        operands = [value, value.convert(Op.FConvert, F32).convert(Op.FConvert, F64)]
    result = BOOL if operation.is_comparison else kind
    if operation.is_extended:
        return builder.extended(operation.number, result, *operands)
    return builder.emit(operation.number, result, *operands)


def _loaded_last(builder: Builder, source: int, lane: Id) -> Id:
    """Returns the value that a loop loads in its last iteration, which is another for each lane."""

    def step(values: Sequence[Id]) -> tuple[list[Id], Id]:
        word = builder.load(source, values[0])
        after = values[0] + 1
        return [after, word], builder.emit(Op.ULessThanEqual, BOOL, after, lane)

    return builder.loop([builder.word(0), builder.word(0)], step, ends_at_head=False)[1]


def _words(builder: Builder, kind: Kind, value: Id) -> list[Id]:
    """Returns the 32-bit words to store."""
    if value.kind == BOOL:
        word = value.select(builder.word(1), builder.word(0))
        return [word, builder.word(0)][: kind.bits // 32]
    if value.kind in (U8, U16):
        return [builder.emit(Op.SConvert, U32, value)]
    if kind.bits == 64:
        pair = value.bits(Kind("u", 32, 2))
        return [builder.emit(Op.CompositeExtract, U32, pair, index) for index in range(2)]
    return [value.convert(Op.FConvert, kind).bits(U32) if kind == F32 else value]


# -- definitions of operations -------------------------------------------------------------------------


def _agrees(case: Case, kind: Kind, value: Number, bits: int) -> bool:
    operation = _OPERATIONS[case.operation]
    expected = operation.meaning(*(value if operand is None else operand for operand in case.operands))
    if operation.is_comparison or kind.letter == "u":
        return bits == int(expected) & ((1 << kind.bits) - 1)
    (result,) = struct.unpack(f"<{_FLOAT_SHAPE[kind.bits]}", struct.pack(f"<{_SHAPE[kind.bits]}", bits))
    if math.isnan(expected) or math.isnan(result):
        return math.isnan(expected) and math.isnan(result)
    if operation.is_zero_signed and math.copysign(1, expected) != math.copysign(1, result):
        return False
    return result == expected or (
        math.isfinite(expected) and math.isfinite(result) and abs(result - expected) <= _ROUGHLY * abs(expected)
    )


def _quotient(x: float, y: float) -> float:
    if y or math.isnan(y):
        return x / y
    sign = math.copysign(1, x) * math.copysign(1, y)
    return math.nan if not x or math.isnan(x) else sign * math.inf


def _divided(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _least(x: float, y: float) -> float:
    return y if math.isnan(x) else x if math.isnan(y) else min(x, y)


def _most(x: float, y: float) -> float:
    return y if math.isnan(x) else x if math.isnan(y) else max(x, y)


def _product(x: float, y: float) -> float:
    return math.nan if 0 in (x, y) and math.inf in (abs(x), abs(y)) else x * y


_OPERATIONS: Final[Mapping[str, _Operation]] = {
    "FAdd": _Operation(Op.FAdd, operator.add),
    "FSub": _Operation(Op.FSub, operator.sub),
    "FMul": _Operation(Op.FMul, _product),
    "FDiv": _Operation(Op.FDiv, _quotient),
    "NMin": _Operation(79, _least, is_extended=True, is_zero_signed=False),
    "NMax": _Operation(80, _most, is_extended=True, is_zero_signed=False),
    "FOrdEqual": _Operation(Op.FOrdEqual, operator.eq, is_comparison=True),
    "FUnordNotEqual": _Operation(Op.FUnordNotEqual, operator.ne, is_comparison=True),
    "FOrdLessThan": _Operation(Op.FOrdLessThan, operator.lt, is_comparison=True),
    "FOrdGreaterThanEqual": _Operation(Op.FOrdGreaterThanEqual, operator.ge, is_comparison=True),
    "SDiv": _Operation(Op.SDiv, _divided),
    "SRem": _Operation(Op.SRem, lambda x, y: x - y * _divided(x, y)),
    "SMod": _Operation(Op.SMod, operator.mod),
    "SMax": _Operation(42, max, is_extended=True),
    "SLessThan": _Operation(Op.SLessThan, operator.lt, is_comparison=True),
    "SGreaterThanEqual": _Operation(Op.SGreaterThanEqual, operator.ge, is_comparison=True),
    "Trunc": _Operation(3, lambda x: math.copysign(math.trunc(x), x), is_extended=True),
    "RoundEven": _Operation(2, lambda x: math.copysign(round(x), x), is_extended=True),
    "load in a loop": _Operation(Op.Load, lambda x: x),
    "differs from its half": _Operation(Op.FOrdNotEqual, lambda x: True, is_comparison=True),
    "differs from its f32": _Operation(Op.FOrdNotEqual, lambda x: True, is_comparison=True),
    "to int and back": _Operation(Op.ConvertSToF, lambda x: float(math.trunc(x))),
}

# -- inputs and cases ----------------------------------------------------------------------------------

_INTEGERS: Final = (0, 1, -1, -2, 7, -7, (1 << 31) - 1, -(1 << 31) + 1)
_BYTES: Final = (0, 1, -1, -2, 7, -7, 127, -127)
_FLOATS: Final = (0.0, -0.0, 1.0, -2.0, 4.0, math.inf, -math.inf, math.nan)
_FRACTIONS: Final = (1.5, -1.5, 2.5, -0.25, 0.75, (1 << 24) + 0.5, (1 << 30) + 0.75, -(1 << 28) - 0.25)


def _both_sides(operations: str, constants: Sequence[Number]) -> Iterator[Case]:
    for operation, constant in itertools.product(operations.split(), constants):
        yield Case(operation, (None, constant))
        yield Case(operation, (constant, None))


def _right_side(operations: str, constants: Sequence[Number]) -> Iterator[Case]:
    for operation, constant in itertools.product(operations.split(), constants):
        yield Case(operation, (None, constant))


# A driver's compiler takes up to 5 ms of CPU time per case: wider types only have cases that showed faults.
_SPECIALS: Final = (
    *_both_sides("FAdd FSub FMul FDiv", (0.0,)),
    *_both_sides("FMul FDiv", (-0.0, math.inf)),
    *_both_sides("FAdd", (-0.0,)),
    *_right_side("FOrdEqual FUnordNotEqual FOrdLessThan", (0.0, math.nan)),
    *_right_side("FOrdGreaterThanEqual", (math.inf,)),
    *_both_sides("NMin NMax", (math.nan,)),
)
_ZEROS: Final = tuple(_both_sides("FAdd FSub FMul FDiv", (0.0,)))
_DIVISIONS: Final = tuple(_right_side("SDiv SRem SMod", (2, 3, -3)))
_NARROW: Final = (*_right_side("SRem SMod", (-3,)), *_right_side("SMod SLessThan", (2,)))
_COMPARISONS: Final = (
    *_both_sides("SLessThan", (0, -2)),
    *_right_side("SGreaterThanEqual SMax", (0,)),
    *_right_side("SDiv SRem", (2,)),
)
_NO_HALVES: Final = tuple(1 + (2 * index + 1) / (1 << 13) for index in range(_LANES))
_PACKED: Final = (Case("differs from its half", (None,)),)
_NO_SINGLES: Final = tuple(1 + (2 * index + 1) / (1 << 40) for index in range(_LANES))
_NARROWED: Final = (Case("differs from its f32", (None,)),)
_LOOPS: Final = (Case("load in a loop", (None,)),)
_ROUNDINGS: Final = tuple(Case(operation, (None,)) for operation in ("Trunc", "RoundEven", "to int and back"))
