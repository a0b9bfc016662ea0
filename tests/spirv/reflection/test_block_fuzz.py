"""Random layouts, as forged modules may have them, and random texts: an answer or a PumiceError, quickly."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.spirv.reflection.block_dtype import block_dtype, difference, element_dtype, only_array, tail
from pumice.spirv.reflection.block_text import parse_blocks, parse_members
from pumice.spirv.reflection.reflection_types import BlockMember, BufferBlock, ScalarType
from pumice.status import PumiceError

SIZES = st.one_of(st.integers(0, 64), st.sampled_from([1 << 16, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1]))
SCALARS = st.sampled_from(
    [
        *(ScalarType("float", 32), ScalarType("uint", 64), ScalarType("int", 8), ScalarType("bool", 32)),
        *(ScalarType("float", 16, "bfloat16"), ScalarType("float", 8, "encoding 9")),
    ]
)


@st.composite
def members(draw: st.DrawFn, depth: int = 0) -> BlockMember:
    inner = tuple(draw(st.lists(members(depth + 1), max_size=3))) if depth < 2 and draw(st.booleans()) else ()
    shape = tuple(draw(st.lists(SIZES, max_size=2)))
    return BlockMember(
        name=draw(st.sampled_from(["", "a", "b", "c"])),
        offset=draw(SIZES),
        size=draw(SIZES),
        scalar=None if inner else draw(SCALARS),
        components=1 if inner else draw(st.integers(1, 4)),
        columns=1 if inner else draw(st.integers(1, 4)),
        matrix_stride=draw(SIZES),
        row_major=draw(st.booleans()),
        members=inner,
        array_length=shape[0] if shape else None,
        array_stride=1 if shape else None,
        array_shape=shape,
        array_strides=tuple(draw(SIZES) for _ in shape),
    )


@pytest.mark.slow
@settings(max_examples=200, deadline=2000)
@given(parts=st.lists(members(), max_size=4), size=SIZES, length=st.one_of(st.none(), SIZES))
def test_dtypes_of_any_layout(parts: list[BlockMember], size: int, length: int | None) -> None:
    block = BufferBlock("b", "B", None, size, tuple(parts))
    with contextlib.suppress(PumiceError):
        dtype = block_dtype(block, length if tail(block.members) is not None else None)
        assert difference(dtype, dtype) == ""
        assert difference(dtype, np.dtype((np.uint8, (dtype.itemsize,)))) == ""
    if only_array(block.members) is not None:
        with contextlib.suppress(PumiceError):
            element_dtype(block)


WORDS = ["struct", "layout", "(", ")", "{", "}", "[", "]", ";", ",", "=", "float", "vec3", "mat2x3", "buffer", "A", "b"]
WORDS += ["3", "0x10u", "binding", "push_constant", "// c\n", "/* c */", "\n#define X\n", "buffer_reference", "$", "/*"]


@pytest.mark.slow
@settings(max_examples=300, deadline=2000)
@given(words=st.lists(st.sampled_from(WORDS), max_size=25))
def test_texts_of_any_words(words: list[str]) -> None:
    text = " ".join(words)
    for parse in (parse_blocks, parse_members):
        with contextlib.suppress(PumiceError):
            parse(text)
