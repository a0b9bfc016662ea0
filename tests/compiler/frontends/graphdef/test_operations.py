"""Operations of TensorFlow, translated and run on the reference device, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from support.compiler.graphdefs import const, ints, node, placeholder, run

from pumice.compiler.frontends.graphdef.operations import OPERATIONS, ROOMS

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

Array: TypeAlias = npt.NDArray[Any]
Case: TypeAlias = tuple[str, Callable[..., Any]]

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tensorflow.md"

A = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
B = np.random.default_rng(2).normal(size=(4,)).astype(np.float32)
N = np.random.default_rng(3).integers(-9, 10, (3, 4)).astype(np.int32)
IMAGE = np.random.default_rng(4).normal(size=(1, 5, 6, 2)).astype(np.float32)
KERNEL = np.random.default_rng(5).normal(size=(3, 3, 2, 4)).astype(np.float32)
INPUTS = {"a": A, "b": B, "n": N, "image": IMAGE, "kernel": KERNEL}


def padded_windows(image: Array, size: int) -> Array:
    """Windows of SAME padding and stride 1, as (batch, height, width, channels, size, size)."""
    low = (size - 1) // 2
    high = size - 1 - low
    whole = np.pad(image, ((0, 0), (low, high), (low, high), (0, 0)))
    return sliding_window_view(whole, (size, size), (1, 2))


def softmax(x: Array) -> Array:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


NORM = const("s", [2, 3]) + const("o", [1, -1]) + const("m", [0.5, 0.25]) + const("v", [4, 1])


def normalised(image: Array) -> Array:
    return np.asarray((image - [0.5, 0.25]) / np.sqrt(np.array([4, 1]) + 0.5) * [2, 3] + [1, -1])


CASES: Mapping[str, Case] = {
    "AddV2": (node("y", "AddV2", "a", "b"), lambda a, b: a + b),
    "SquaredDifference": (node("y", "SquaredDifference", "a", "b"), lambda a, b: (a - b) ** 2),
    "FloorMod": (ints("c", -4) + node("y", "FloorMod", "n", "c"), lambda n: np.mod(n, -4)),
    "FloorDiv": (ints("c", -4) + node("y", "FloorDiv", "n", "c"), lambda n: n // -4),
    "Mod": (ints("c", -4) + node("y", "Mod", "n", "c"), lambda n: np.fmod(n, -4)),
    "Greater": (node("y", "Greater", "a", "b"), lambda a, b: a > b),
    "Select": (
        node("p", "Less", "n", "zero") + ints("zero", 0) + node("m", "Neg", "a") + node("y", "Select", "p", "a", "m"),
        lambda a, n: np.where(n < 0, a, -a),
    ),
    "Cast": (node("y", "Cast", "n", DstT="DT_FLOAT"), lambda n: n.astype(np.float32)),
    "Relu6": (const("c", 5.0) + node("m", "Mul", "a", "c") + node("y", "Relu6", "m"), lambda a: np.clip(a * 5, 0, 6)),
    "LeakyRelu": (node("y", "LeakyRelu", "a", alpha=0.25), lambda a: np.where(a > 0, a, a * 0.25)),
    "Elu": (node("y", "Elu", "a"), lambda a: np.where(a > 0, a, np.expm1(a))),
    "Softplus": (node("y", "Softplus", "a"), lambda a: np.log1p(np.exp(a))),
    "Sigmoid": (node("y", "Sigmoid", "a"), lambda a: 1 / (1 + np.exp(-a))),
    "Erf": (node("y", "Erf", "a"), lambda a: np.vectorize(math.erf)(a)),
    "MatMul": (node("y", "MatMul", "a", "a", transpose_b=True), lambda a: a @ a.T),
    "BatchMatMulV2": (node("y", "BatchMatMulV2", "a", "a", adj_x=True), lambda a: a.T @ a),
    "Einsum": (node("y", "Einsum", "a", "b", equation="ij,j->ij"), lambda a, b: np.einsum("ij,j->ij", a, b)),
    "BiasAdd": (node("y", "BiasAdd", "a", "b"), lambda a, b: a + b),
    "Conv2D": (
        node("y", "Conv2D", "image", "kernel", strides=[1, 1, 1, 1], padding="SAME"),
        lambda image, kernel: np.einsum("bhwcij,ijco->bhwo", padded_windows(image, 3), kernel),
    ),
    "Conv2D with strides": (
        node("y", "Conv2D", "image", "kernel", strides=[1, 2, 2, 1], padding="VALID"),
        lambda image, kernel: np.einsum(
            "bhwcij,ijco->bhwo", sliding_window_view(image, (3, 3), (1, 2))[:, ::2, ::2], kernel
        ),
    ),
    "DepthwiseConv2dNative": (
        node("y", "DepthwiseConv2dNative", "image", "kernel", strides=[1, 1, 1, 1], padding="SAME"),
        lambda image, kernel: np.einsum("bhwcij,ijcm->bhwcm", padded_windows(image, 3), kernel).reshape(1, 5, 6, 8),
    ),
    "MaxPool": (
        node("y", "MaxPool", "image", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        lambda image: sliding_window_view(image, (2, 2), (1, 2))[:, ::2, ::2].max((-1, -2)),
    ),
    "AvgPool": (
        node("y", "AvgPool", "image", ksize=[1, 3, 3, 1], strides=[1, 1, 1, 1], padding="SAME"),
        lambda image: padded_windows(image, 3).sum((-1, -2)) / padded_windows(np.ones_like(image), 3).sum((-1, -2)),
    ),
    "FusedBatchNormV3": (
        NORM
        + node("y", "FusedBatchNormV3", "image", *"somv", epsilon=0.5, is_training=False)
        + node("z", "Identity", "y"),
        normalised,
    ),
    "BatchNormWithGlobalNormalization": (
        NORM
        + node(
            "y",
            "BatchNormWithGlobalNormalization",
            *("image", *"mvos"),
            variance_epsilon=0.5,
            scale_after_normalization=True,
        ),
        normalised,
    ),
    "Softmax": (node("y", "Softmax", "a"), lambda a: softmax(a)),
    "LogSoftmax": (node("y", "LogSoftmax", "a"), lambda a: np.log(softmax(a))),
    "Mean": (ints("d", [-1]) + node("y", "Mean", "a", "d", keep_dims=True), lambda a: a.mean(-1, keepdims=True)),
    "Prod": (ints("d", [0]) + node("y", "Prod", "a", "d"), lambda a: a.prod(0)),
    "All": (
        node("p", "Less", "n", "zero") + ints("zero", 5) + ints("d", 1) + node("y", "All", "p", "d"),
        lambda n: (n < 5).all(1),
    ),
    "ArgMax": (ints("d", 1) + node("y", "ArgMax", "n", "d"), lambda n: n.argmax(1)),
    "Cumsum": (ints("d", 1) + node("y", "Cumsum", "n", "d"), lambda n: n.cumsum(1)),
    "Reshape": (ints("s", [2, -1]) + node("y", "Reshape", "a", "s"), lambda a: a.reshape(2, -1)),
    "Reshape by a shape": (
        node("s", "Shape", "image")
        + ints("i", [0])
        + ints("j", [1])
        + ints("one", [1])
        + node("batch", "StridedSlice", "s", "i", "j", "one", shrink_axis_mask=1)
        + ints("rest", -1)
        + node("t", "Pack", "batch", "rest", axis=0)
        + node("y", "Reshape", "image", "t"),
        lambda image: image.reshape(1, -1),
    ),
    "Transpose": (ints("p", [1, 0]) + node("y", "Transpose", "a", "p"), lambda a: a.T),
    "Squeeze": (node("y", "Squeeze", "image", squeeze_dims=[0]), lambda image: image[0]),
    "Tile": (ints("m", [2, 3]) + node("y", "Tile", "a", "m"), lambda a: np.tile(a, (2, 3))),
    "PadV2": (
        ints("p", [[1, 0], [0, 2]]) + const("c", 9) + node("y", "PadV2", "a", "p", "c"),
        lambda a: np.pad(a, ((1, 0), (0, 2)), constant_values=9),
    ),
    "MirrorPad": (
        ints("p", [[1, 2], [0, 3]]) + node("y", "MirrorPad", "a", "p", mode="REFLECT"),
        lambda a: np.pad(a, ((1, 2), (0, 3)), "reflect"),
    ),
    "ConcatV2": (ints("d", 1) + node("y", "ConcatV2", "a", "a", "d"), lambda a: np.concatenate([a, a], 1)),
    "Pack": (node("y", "Pack", "a", "a", axis=1), lambda a: np.stack([a, a], 1)),
    "Unpack": (
        node("u", "Unpack", "a", num=3) + node("y", "Sub", "u:2", "u"),
        lambda a: a[2] - a[0],
    ),
    "SplitV": (
        ints("s", [1, -1]) + ints("d", 1) + node("v", "SplitV", "a", "s", "d") + node("y", "Neg", "v:1"),
        lambda a: -a[:, 1:],
    ),
    "StridedSlice": (
        ints("s", [-1, 3, 0])
        + ints("e", [0, 0, 0])
        + ints("t", [1, -2, 1])
        + node("y", "StridedSlice", "a", "s", "e", "t", shrink_axis_mask=1, end_mask=2, new_axis_mask=4),
        lambda a: a[-1, 3::-2, np.newaxis],
    ),
    "GatherV2": (
        ints("i", [[3, 0], [1, 1]]) + ints("d", 1) + node("y", "GatherV2", "a", "i", "d"),
        lambda a: a[:, [[3, 0], [1, 1]]],
    ),
    "GatherNd": (ints("i", [[2, 3], [0, 1]]) + node("y", "GatherNd", "a", "i"), lambda a: a[[2, 0], [3, 1]]),
    "OneHot": (
        ints("i", [2, 0, 7])
        + ints("d", 3)
        + const("on", 5)
        + const("off", 1)
        + node("y", "OneHot", "i", "d", "on", "off"),
        lambda: np.array([[1, 1, 5], [5, 1, 1], [1, 1, 1]]),
    ),
    "TopKV2": (
        ints("k", 2) + node("t", "TopKV2", "a", "k") + node("y", "Neg", "t:1"),
        lambda a: -np.argsort(-a, 1)[:, :2],
    ),
    "ResizeNearestNeighbor": (
        ints("s", [10, 3]) + node("y", "ResizeNearestNeighbor", "image", "s"),
        lambda image: image[:, np.arange(10) // 2][:, :, ::2],
    ),
    "ResizeBilinear": (
        ints("s", [9, 6]) + node("y", "ResizeBilinear", "image", "s", align_corners=True),
        lambda image: np.stack(
            [(image[:, (i + 1) // 2] + image[:, i // 2]) / 2 for i in range(9)],
            1,
        ),
    ),
    "SpaceToDepth": (
        ints("start", [0, 0, 0, 0])
        + ints("z", [-1, 4, -1, -1])
        + node("c", "Slice", "image", "start", "z")
        + node("y", "SpaceToDepth", "c", block_size=2),
        lambda image: image[:, :4].reshape(1, 2, 2, 3, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 3, 8),
    ),
    "PlaceholderWithDefault": (
        const("c", 3) + node("d", "PlaceholderWithDefault", "c", dtype="DT_FLOAT") + node("y", "Mul", "a", "d"),
        lambda a: a * 3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_result_is_numpys(name: str) -> None:
    nodes, function = CASES[name]
    used = {key: value for key, value in INPUTS.items() if f'input: "{key}"' in nodes}
    text = "".join(
        placeholder(key, *value.shape, dtype="DT_INT32" if value.dtype == np.int32 else "DT_FLOAT")
        for key, value in used.items()
    )
    wanted = np.asarray(function(**used))
    found = run(text + nodes, **used)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, 2e-5, 2e-6)


def test_the_table_has_every_operation() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    wanted = [f"| {name} | {' '.join(sorted(room))} |" for name, room in ROOMS.items()]
    assert rows == wanted
    assert set().union(*ROOMS.values()) == set(OPERATIONS)
