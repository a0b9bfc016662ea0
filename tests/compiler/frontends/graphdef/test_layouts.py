"""Channels first gives the same as channels last: TensorFlow's own CPU kernels lack most of these."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from support.compiler.graphdefs import Setting, const, node, placeholder, run

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

X = np.random.default_rng(1).normal(size=(2, 6, 4, 8)).astype(np.float32)
KERNEL = np.random.default_rng(2).normal(size=(3, 2, 8, 4)).astype(np.float32)
VECTORS = "".join(const(name, np.linspace(0.5, value, 8)) for name, value in (("s", 2), ("o", -1), ("m", 1), ("v", 4)))
WEIGHTS = node("k", "Const", dtype="DT_FLOAT", value=KERNEL)

# Operations with more inputs than the image, and attributes with a number for each dimension of NHWC.
OPERATIONS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Setting]]] = {
    "BiasAdd": (("s",), {}),
    "Conv2D": (("k",), {"strides": [1, 2, 1, 1], "dilations": [1, 1, 2, 1], "padding": "SAME"}),
    "Conv2D explicit": (
        ("k",),
        {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
    ),
    "DepthwiseConv2dNative": (("k",), {"strides": [1, 2, 2, 1], "padding": "VALID"}),
    "MaxPool": ((), {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}),
    "AvgPool": ((), {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}),
    "FusedBatchNormV3": (("s", "o", "m", "v"), {"is_training": False}),
    "FusedBatchNormV3 training": (("s", "o", "m", "v"), {"is_training": True}),
    "DepthToSpace": ((), {"block_size": 2}),
    "SpaceToDepth": ((), {"block_size": 2}),
}
PER_DIMENSION = ("strides", "dilations", "ksize")


@pytest.mark.parametrize("name", OPERATIONS)
def test_channels_first_is_channels_last(name: str) -> None:
    others, settings = OPERATIONS[name]
    first = dict(settings)
    for key, value in settings.items():
        if isinstance(value, list) and key in PER_DIMENSION:
            first[key] = [value[0], value[3], value[1], value[2]]
        elif isinstance(value, list):
            first[key] = [*value[:2], *value[6:], *value[2:6]]
    op = name.split()[0]
    text = placeholder("x", *X.shape) + VECTORS + WEIGHTS
    text += const("first", [0, 3, 1, 2], np.int32) + const("last", [0, 2, 3, 1], np.int32)
    text += node("one", op, "x", *others, **settings, data_format="NHWC")
    text += node("t", "Transpose", "x", "first")
    text += node("moved", op, "t", *others, **first, data_format="NCHW") + node("two", "Transpose", "moved", "last")
    one, two = run(text, fetches=["one", "two"], x=X)
    np.testing.assert_allclose(one, two, 1e-5, 1e-5)


def test_transposed_convolution() -> None:
    text = placeholder("x", 2, 6, 4, 4) + WEIGHTS + const("last", [0, 2, 3, 1], np.int32)
    text += const("first", [0, 3, 1, 2], np.int32) + const("a", [2, 12, 8, 8], np.int32)
    text += const("b", [2, 8, 12, 8], np.int32)
    settings = {"padding": "SAME"}
    text += node("one", "Conv2DBackpropInput", "a", "k", "x", strides=[1, 2, 2, 1], data_format="NHWC", **settings)
    text += node("t", "Transpose", "x", "first")
    text += node("moved", "Conv2DBackpropInput", "b", "k", "t", strides=[1, 1, 2, 2], data_format="NCHW", **settings)
    one, two = run(text + node("two", "Transpose", "moved", "last"), fetches=["one", "two"], x=X[..., :4])
    np.testing.assert_allclose(one, two, 1e-5, 1e-5)
