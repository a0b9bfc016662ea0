"""Blocks of plain numbers: the same bytes as by the general way, which converts and refuses the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pumice.runtime.kernels.parameters.block import pack_members
from pumice.runtime.kernels.parameters.number_block import NumberBlock
from pumice.spirv.reflection.reflection_types import BlockMember, ScalarType
from pumice.status import PumiceError

KINDS = [("float", 16), ("float", 32), ("float", 64), *((k, b) for k in ("int", "uint") for b in (8, 16, 32, 64))]
NUMBERS = [0, 1, -1, True, 127, 128, 255, 2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**60 + 1, 2**63, 2**64, 10**400, 0.5]
NUMBERS += [-0.0, 3.0, 1e300, 65520.0, math.inf, math.nan, "1", None, 1j]
NUMBERS += [np.float32(0.1), np.float64(0.1), np.float16(0.5), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)]


def member(kind: str, bits: int, components: int = 1, offset: int = 4) -> BlockMember:
    return BlockMember("x", offset, components * bits // 8, ScalarType(kind, bits), components)


def general(members: list[BlockMember], values: dict[str, object], size: int) -> bytes | None:
    data = bytearray(size)
    try:
        pack_members(data, 0, members, values, "k")
    except PumiceError:
        return None
    return bytes(data)


@pytest.mark.parametrize(("kind", "bits"), KINDS)
@pytest.mark.parametrize("components", [1, 3])
def test_the_bytes_are_those_of_the_general_way(kind: str, bits: int, components: int) -> None:
    members = [member(kind, bits, components)]
    fast = NumberBlock(members, 40)
    packed = 0
    for number in NUMBERS:
        several = [number] * components
        values = [number] if components == 1 else [number, several, tuple(several), several[1:], [several]]
        if isinstance(number, (int, float, np.number)):
            values.append(np.array(number if components == 1 else several))
        for value in values:
            data = fast.pack({"x": value})
            if data is not None:
                packed += 1
                assert bytes(data) == general(members, {"x": value}, 40), (value, type(value))
    assert packed >= 10


def test_other_values_are_left_to_the_general_way() -> None:
    fast = NumberBlock([member("float", 32)], 8)
    assert fast.pack({"x": 1.0}) is not None
    for values in ({}, {"y": 1.0}, {"x": 1.0, "y": 1.0}, {"x": [1.0]}, {"x": np.ones(1)}, {"x": "1"}):
        assert fast.pack(values) is None


def test_blocks_with_other_members_are_left_to_the_general_way() -> None:
    array = BlockMember("a", 0, 8, ScalarType("float", 32), array_length=2, array_stride=4, array_shape=(2,))
    pointer = BlockMember("p", 0, 8, ScalarType("uint", 64), pointee="T")
    matrix = BlockMember("m", 0, 16, ScalarType("float", 32), components=2, columns=2, matrix_stride=8)
    flag = BlockMember("b", 0, 4, ScalarType("bool", 32))
    brain = BlockMember("h", 0, 2, ScalarType("float", 16, "bfloat16"))
    for other in (brain, array, pointer, matrix, flag):
        fast = NumberBlock([member("float", 32, offset=16), other], 32)
        assert fast.pack({}) is None
        assert fast.pack({"x": 1.0, other.name: 1}) is None
