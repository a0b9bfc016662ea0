"""Constants of a GraphDef in every encoding, and those that lie about their size."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from pumice.compiler.frontends.graphdef.file.messages import parse_text
from pumice.compiler.frontends.graphdef.file.tensors import array_of

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")


def read(tensor: str) -> npt.NDArray[np.generic]:
    graph = parse_text(f'node {{ attr {{ key: "value" value {{ tensor {{ {tensor} }} }} }} }}')
    return array_of(graph.node[0].attr["value"].tensor)


def shape(*lengths: int) -> str:
    return f"tensor_shape {{ {' '.join(f'dim {{ size: {length} }}' for length in lengths)} }}"


@pytest.mark.parametrize(
    ("tensor", "wanted"),
    [
        (f"dtype: DT_FLOAT {shape(3)} float_val: [1, -2.5, inf]", np.array([1, -2.5, np.inf], np.float32)),
        (f"dtype: DT_FLOAT {shape(2, 2)} float_val: 7", np.full((2, 2), 7, np.float32)),
        (f"dtype: DT_FLOAT {shape(2, 2)} float_val: [1, 2]", np.array([[1, 2], [2, 2]], np.float32)),
        (f"dtype: DT_FLOAT {shape(3)}", np.zeros(3, np.float32)),
        (f"dtype: DT_FLOAT {shape()} float_val: 4", np.array(4, np.float32)),
        (f"dtype: DT_FLOAT {shape(0)}", np.zeros(0, np.float32)),
        (
            f'dtype: DT_FLOAT {shape(2)} tensor_content: "\\000\\000\\200?\\000\\000\\000@"',
            np.array([1, 2], np.float32),
        ),
        (f"dtype: DT_DOUBLE {shape(2)} double_val: [0.1, 1e300]", np.array([0.1, 1e300])),
        (f"dtype: DT_HALF {shape(2)} half_val: [15360, 49152]", np.array([1, -2], np.float16)),
        (f"dtype: DT_BFLOAT16 {shape(2)} half_val: [16256, 49152]", np.array([1, -2], ml_dtypes.bfloat16)),
        (f"dtype: DT_INT32 {shape(2)} int_val: [-1, 2147483647]", np.array([-1, 2147483647], np.int32)),
        (f"dtype: DT_INT8 {shape(2)} int_val: [-1, 127]", np.array([-1, 127], np.int8)),
        (f"dtype: DT_UINT8 {shape(2)} int_val: [0, 255]", np.array([0, 255], np.uint8)),
        (f"dtype: DT_UINT16 {shape(1)} int_val: 65535", np.array([65535], np.uint16)),
        (f"dtype: DT_INT64 {shape(1)} int64_val: -9223372036854775808", np.array([-(2**63)], np.int64)),
        (f"dtype: DT_UINT32 {shape(1)} uint32_val: 4294967295", np.array([2**32 - 1], np.uint32)),
        (f"dtype: DT_UINT64 {shape(1)} uint64_val: 18446744073709551615", np.array([2**64 - 1], np.uint64)),
        (f"dtype: DT_BOOL {shape(3)} bool_val: [true, false]", np.array([True, False, False])),
        (f'dtype: DT_BOOL {shape(2)} tensor_content: "\\001\\000"', np.array([True, False])),
        (f"dtype: DT_COMPLEX64 {shape(2)} scomplex_val: [1, 2, 3, -4]", np.array([1 + 2j, 3 - 4j], np.complex64)),
        (f"dtype: DT_COMPLEX128 {shape(1)} dcomplex_val: [1, 2]", np.array([1 + 2j])),
        (f"dtype: DT_FLOAT_REF {shape(1)} float_val: 3", np.array([3], np.float32)),
    ],
)
def test_every_encoding(tensor: str, wanted: npt.NDArray[np.generic]) -> None:
    found = read(tensor)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


def test_one_value_for_all_takes_no_memory() -> None:
    assert not any(read(f"dtype: DT_FLOAT {shape(1000, 1000, 100)} float_val: 1").strides)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (f"dtype: DT_FLOAT {shape(2)} float_val: [1, 2, 3]", "has 2 elements, got 3 values"),
        (f'dtype: DT_FLOAT {shape(2)} tensor_content: "abc"', "takes 8 bytes, got 3"),
        (f"dtype: DT_FLOAT {shape(-1)} float_val: 1", "is not known"),
        (f"dtype: DT_FLOAT {shape(-7)} float_val: 1", "has the lengths"),
        (f"dtype: DT_FLOAT {shape(1 << 20, 1 << 40)} float_val: [1, 2]", "more than fits"),
        ("dtype: DT_FLOAT tensor_shape { unknown_rank: true } float_val: 1", "is not known"),
        (f"dtype: DT_COMPLEX64 {shape(1)} scomplex_val: [1, 2, 3]", "pairs"),
        (f'dtype: DT_STRING {shape(1)} string_val: "a"', "strings are no tensors"),
        (f"dtype: DT_QINT8 {shape(1)} int_val: 1", "quantized"),
        (f"dtype: DT_INVALID {shape(1)} int_val: 1", "no element type"),
    ],
)
def test_wrong_constants(tensor: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tensor)
