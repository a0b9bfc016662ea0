"""Graphs that leave the batch open: one module for every size, on the reference device and on Vulkan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from support.compiler.graphdefs import const, ints, node, placeholder
from support.compiler.modules import BOTH
from support.compiler.stages import check_stages

import pumice
from pumice.compiler.frontends.graphdef.importer import import_graph
from pumice.compiler.stages import program_of

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

Array: TypeAlias = npt.NDArray[Any]

SIZES = (1, 2, 5)
X = placeholder("x", -1, 4)
KERNEL = np.random.default_rng(5).normal(size=(3, 3, 2, 4)).astype(np.float32)


FIRST = node("s", "Shape", "x") + ints("i", [0]) + ints("j", [1])
FIRST += node("batch", "StridedSlice", "s", "i", "j", "j", shrink_axis_mask=1)

# Nodes, the shape without the batch, and the expected result.
GRAPHS: Mapping[str, tuple[str, tuple[int, ...], Callable[[Array], Array]]] = {
    "softmax": (X + node("y", "Softmax", "x"), (4,), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "two of one batch": (X + const("c", [1, 2, 3, 4]) + node("y", "Mul", "x", "c"), (4,), lambda x: x * [1, 2, 3, 4]),
    "reshape": (X + ints("t", [-1, 2]) + node("y", "Reshape", "x", "t"), (4,), lambda x: x.reshape(-1, 2)),
    "reshape by the batch": (
        X + FIRST + ints("t", 2) + node("r", "Pack", "batch", "t", "t", axis=0) + node("y", "Reshape", "x", "r"),
        (4,),
        lambda x: x.reshape(-1, 2, 2),
    ),
    "flatten": (
        placeholder("x", -1, 2, 3)
        + FIRST
        + ints("t", -1)
        + node("r", "Pack", "batch", "t", axis=0)
        + node("y", "Reshape", "x", "r"),
        (2, 3),
        lambda x: x.reshape(len(x), 6),
    ),
    "zeros of the batch": (
        X
        + FIRST
        + ints("t", 3)
        + const("v", 7)
        + node("r", "Pack", "batch", "t", axis=0)
        + node("y", "Fill", "r", "v"),
        (4,),
        lambda x: np.full((len(x), 3), 7, np.float32),
    ),
    "size": (X + node("n", "Size", "x") + node("y", "Neg", "n"), (4,), lambda x: np.int32(-x.size)),
    "slices": (
        X
        + ints("b", [0, 1])
        + ints("e", [0, 3])
        + ints("t", [1, 1])
        + node("y", "StridedSlice", "x", "b", "e", "t", begin_mask=1, end_mask=1),
        (4,),
        lambda x: x[:, 1:3],
    ),
    "concatenation and padding": (
        X
        + ints("d", 1)
        + ints("p", [[0, 0], [1, 2]])
        + node("c", "ConcatV2", "x", "x", "d")
        + node("y", "Pad", "c", "p"),
        (4,),
        lambda x: np.pad(np.concatenate([x, x], 1), ((0, 0), (1, 2))),
    ),
    "convolution and pools": (
        placeholder("x", -1, 5, 6, 2)
        + node("k", "Const", dtype="DT_FLOAT", value=KERNEL)
        + ints("d", [1, 2])
        + node("c", "Conv2D", "x", "k", strides=[1, 1, 1, 1], padding="VALID")
        + node("r", "Relu6", "c")
        + node("a", "AvgPool", "r", ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")
        + node("m", "MaxPool", "a", ksize=[1, 3, 4, 1], strides=[1, 1, 1, 1], padding="VALID")
        + node("y", "Mean", "m", "d"),
        (5, 6, 2),
        lambda x: np.clip(
            np.einsum("bhwcij,ijco->bhwo", np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2)), KERNEL), 0, 6
        ).max((1, 2)),
    ),
    "gather and one_hot": (
        placeholder("x", -1, 3, dtype="DT_INT32")
        + ints("d", 3)
        + const("on", 1)
        + const("off", 0)
        + const("table", [[1, 2], [3, 4], [5, 6]])
        + ints("z", 0)
        + node("h", "OneHot", "x", "d", "on", "off")
        + node("e", "Einsum", "h", "table", equation="bij,jk->bik")
        + node("g", "GatherV2", "table", "x", "z")
        + node("y", "Add", "e", "g"),
        (3,),
        lambda x: 2 * np.array([[1, 2], [3, 4], [5, 6]], np.float32)[x],
    ),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", GRAPHS)
def test_one_module_for_every_size(session: pumice.Session, name: str) -> None:
    text, inner, function = GRAPHS[name]
    module = pumice.compile(text.encode(), file_name="open.pbtxt", targets=BOTH, fetches=["y"])
    loaded = session.load(module)
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=(size, *inner)).astype(np.float32)
        x = np.abs(x * 3).astype(np.int32) % 3 if "DT_INT32" in text.splitlines()[0] else x
        found = np.asarray(session.call(f"{loaded.name}.open", x))
        wanted = np.asarray(function(x))
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, 2e-5, 2e-6)


def test_stages_are_programs() -> None:
    data = GRAPHS["reshape by the batch"][0].encode()
    check_stages(program_of(*import_graph(data, "open.pbtxt")).text())


def test_a_feed_opens_and_closes_the_batch() -> None:
    text = placeholder("x", 2, 4) + node("y", "Neg", "x")
    (module,), _ = import_graph((X + node("y", "Neg", "x")).encode(), "open.pbtxt", ["x=3x4"])
    assert "tensor<3x4xf32>" in str(module.regions[0].block.operations[0].attributes["function_type"])
    with pytest.raises(ValueError, match="fed with the shape 3x4, and declared as 2x4"):
        import_graph(text.encode(), "open.pbtxt", ["x=3x4"])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (node("u", "Unpack", "x") + node("y", "Neg", "u"), r"\(d0\) depends on the call"),
        (ints("d", [0]) + node("y", "Mean", "x", "d"), r"\(d0\) depends on the call"),
        (ints("t", [3, -1]) + node("y", "Reshape", "x", "t"), "does not fit into the shape"),
        (ints("d", 0) + node("y", "Cumsum", "x", "d"), r"\(d0\) depends on the call"),
    ],
)
def test_what_needs_a_number_says_so(nodes: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        import_graph((X + nodes).encode(), "open.pbtxt", fetches=["y"])
