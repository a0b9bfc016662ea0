"""Wrong GraphDefs: each gets a message with its node and place, in bounded time, and no other exception."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiler.graphdefs import const, node, placeholder

from pumice.compiler.frontends.graphdef import translator
from pumice.compiler.frontends.graphdef.file.messages import parse_text
from pumice.compiler.frontends.graphdef.importer import import_graph
from pumice.compiler.ir.source import CompileError
from pumice.status import PumiceError

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

X = placeholder("x", 4)
Y = placeholder("y", 4)
IMAGE = placeholder("x", 1, 5, 5, 3)
FUNCTION = (
    'library {{ function {{ signature {{ name: "f" input_arg {{ name: "a" type: DT_FLOAT }} '
    'output_arg {{ name: "b" type: DT_FLOAT }} }}\n node_def {{ name: "n" op: "{}" input: "a" }} '
    'ret {{ key: "b" value: "n:y:0" }} }} }}'
).format


def lies(shape: str, values: str) -> str:
    tensor = f"dtype: DT_FLOAT tensor_shape {{ {shape} }} {values}"
    return (
        'node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } '
        f'attr {{ key: "value" value {{ tensor {{ {tensor} }} }} }} }}\n'
    )


def conv(**settings: object) -> str:
    given = {"strides": [1, 1, 1, 1], "padding": "SAME", **settings}
    return IMAGE + placeholder("k", 3, 3, 3, 4) + node("m", "Conv2D", "x", "k", **given)  # type: ignore[arg-type]


def ints(name: str, *values: int) -> str:
    return const(name, values, np.int64)


# Texts, the line of the message, and a part of it.
WRONG: Mapping[str, tuple[str, int, str]] = {
    # -- the file and its edges
    "empty": ("", 1, "the graph has no nodes; a SavedModel is no GraphDef"),
    "other text": ("hello {", 1, 'no field named "hello"'),
    "unknown field": (X + 'node { nam: "y" }', 2, 'no field named "nam"'),
    "open brace": (X + "node {", 2, "expected a GraphDef as text"),
    "open string": (X + 'node { name: "a', 2, "expected a GraphDef as text"),
    "deep": (X + 'node { attr { key: "k" value ' + '{ list { func { attr { key: "k" value ' * 500, 1, "too deeply"),
    "no name": (X + 'node { op: "Relu" }', 2, "a node with a name"),
    "no op": (X + 'node { name: "a" }', 2, "a node with a name and an op"),
    "two of a name": (X + X, 2, "node 'x' (Placeholder): there is another node of that name"),
    "missing input": (X + node("a", "Add", "x", "nope"), 2, "node 'a' (Add): it takes 'nope'"),
    "missing control": (X + node("a", "Neg", "x", "^nope"), 2, "it takes 'nope'"),
    "cycle": (X + node("a", "Add", "x", "b") + node("b", "Neg", "a"), 2, "the graph has a cycle: a → b → a"),
    "self": (X + node("a", "Add", "x", "a"), 2, "a cycle: a → a"),
    "cycle of controls": (X + node("a", "Neg", "x", "^b") + node("b", "Neg", "a"), 2, "a cycle"),
    "output beyond": (X + node("a", "Neg", "x:3"), 2, "'x:3' is wanted, which is not among the outputs of 'x'"),
    # -- types and numbers of inputs
    "types differ": (X + placeholder("y", 4, dtype="DT_INT32") + node("m", "Mul", "x", "y"), 3, "one element type"),
    "type is another": (X + node("m", "Neg", "x", T="DT_INT32"), 2, "its type T is i32, its inputs are (tensor<4xf32>"),
    "too few": (X + node("m", "Mul", "x"), 2, "expected 2 inputs, got 1"),
    "too many": (X + node("m", "Neg", "x", "x"), 2, "expected 1 input, got 2"),
    "none": (X + node("m", "Relu"), 2, "expected 1 input, got 0"),
    "shapes": (X + placeholder("y", 5) + node("m", "Mul", "x", "y"), 3, "shapes [4] and [5] do not broadcast"),
    "no booleans": (X + node("m", "LogicalAnd", "x", "x"), 2, "elements of one of these kinds"),
    "strings": (X + node("m", "Cast", "x", DstT="DT_STRING"), 2, "strings are no tensors of numbers"),
    "quantized": (X + node("m", "Cast", "x", DstT="DT_QINT8"), 2, "quantized elements"),
    "source type": (X + node("m", "Cast", "x", SrcT="DT_INT32", DstT="DT_FLOAT"), 2, "SrcT is i32"),
    # -- constants
    "too short": (lies("dim { size: 3 }", 'tensor_content: "12345678"') + node("m", "Neg", "c"), 1, "takes 12 bytes"),
    "too many values": (lies("dim { size: 1 }", "float_val: [1, 2]") + node("m", "Neg", "c"), 1, "got 2 values"),
    "negative": (lies("dim { size: -5 }", "float_val: 1") + node("m", "Neg", "c"), 1, "lengths [-5]"),
    "huge constant": (
        lies("dim { size: 1048576 } dim { size: 1048576 }", "float_val: [1, 2]") + node("m", "Neg", "c"),
        1,
        "more than fits",
    ),
    "no value": (node("c", "Const", dtype="DT_FLOAT") + node("m", "Neg", "c"), 1, "expected the attribute value"),
    "value of another type": (
        node("c", "Const", dtype="DT_INT32", value=np.zeros(2, np.float32)) + node("m", "Neg", "c"),
        1,
        "dtype is i32",
    ),
    # -- sizes
    "huge placeholder": (placeholder("x", 1 << 40, 1 << 20) + node("m", "Neg", "x"), 1, "4294967296 elements or more"),
    "huge placeholder without elements": (
        placeholder("x", (1 << 63) - 1, 0) + node("m", "Neg", "x"),
        1,
        "4294967296 elements or more",
    ),
    "huge fill without elements": (
        const("v", 1) + ints("s", (1 << 63) - 1, 0) + node("m", "Fill", "s", "v"),
        3,
        "less than 4294967296 elements",
    ),
    "huge fill": (
        const("v", 1) + ints("s", 1 << 30, 1 << 30) + node("m", "Fill", "s", "v"),
        3,
        "less than 4294967296 elements",
    ),
    "huge tile": (X + ints("s", 1 << 62) + node("m", "Tile", "x", "s"), 3, "less than 4294967296 elements"),
    "huge pad": (X + ints("s", 1 << 50, 1 << 50) + node("m", "Pad", "x", "s"), 3, "less than 4294967296 elements"),
    "huge range": (
        const("a", 0, np.int64)
        + const("b", 1 << 60, np.int64)
        + const("d", 1, np.int64)
        + node("r", "Range", "a", "b", "d")
        + node("m", "Neg", "r"),
        4,
        "expected the number of values to be from 0 to",
    ),
    "many parts": (placeholder("x", 1 << 20) + node("m", "Unpack", "x", num=1 << 20), 2, "at most 16384 parts"),
    "huge image": (IMAGE + ints("s", 1 << 30, 1 << 30) + node("m", "ResizeBilinear", "x", "s"), 3, "the height"),
    # -- shapes and attributes
    "no fit": (X + ints("s", 3) + node("m", "Reshape", "x", "s"), 3, "does not fit into the shape [3]"),
    "two open": (X + ints("s", -1, -1) + node("m", "Reshape", "x", "s"), 3, "does not fit into the shape [-1, -1]"),
    "unknown shape": (X + placeholder("s", 1, dtype="DT_INT32") + node("m", "Reshape", "x", "s"), 3, "be a constant"),
    "fraction as shape": (X + const("s", [4]) + node("m", "Reshape", "x", "s"), 3, "expected integers as the shape"),
    "dimension": (X + ints("d", 7) + node("m", "Sum", "x", "d"), 3, "a dimension from -1 to 0, got 7"),
    "dimension twice": (X + ints("d", 0, 0) + node("m", "Sum", "x", "d"), 3, "each dimension once"),
    "order": (X + ints("d", 1) + node("m", "Transpose", "x", "d"), 3, "a dimension from -1 to 0"),
    "permutation": (ints("d", 5, 5) + node("m", "InvertPermutation", "d"), 2, "an order"),
    "ranks": (X + IMAGE.replace('"x"', '"z"') + ints("d", 0) + node("m", "ConcatV2", "x", "z", "d"), 4, "one rank"),
    "slice": (X + ints("b", 9) + ints("s", 2) + node("m", "Slice", "x", "b", "s"), 4, "expected a part of"),
    "stride": (
        X + ints("b", 0) + ints("e", 4) + ints("s", 0) + node("m", "StridedSlice", "x", "b", "e", "s"),
        5,
        "strides other than 0",
    ),
    "index": (
        X
        + ints("b", 9)
        + ints("e", 9)
        + ints("s", 1)
        + node("m", "StridedSlice", "x", "b", "e", "s", shrink_axis_mask=1),
        5,
        "index 9 of dimension 0 is out of",
    ),
    "matrices": (X + node("m", "MatMul", "x", "x"), 2, "expected two matrices"),
    "inner length": (
        placeholder("x", 2, 3) + node("m", "MatMul", "x", "x"),
        2,
        "dimension 1 of tensor<2x3xf32> as long as dimension 0",
    ),
    "kind of attribute": (
        placeholder("x", 3, 3) + node("m", "MatMul", "x", "x", transpose_a=3),
        2,
        "kind 'b', got 'i'",
    ),
    "channels": (
        IMAGE + placeholder("k", 3, 3, 2, 4) + node("m", "Conv2D", "x", "k", strides=[1, 1, 1, 1], padding="SAME"),
        3,
        "groups of 2",
    ),
    "padding": (conv(padding="WIDE"), 3, "expected the padding SAME, VALID or EXPLICIT, got WIDE"),
    "strides of 0": (conv(strides=[1, 0, 1, 1]), 3, "strides with a number of at least 1"),
    "few strides": (conv(strides=[1, 1]), 3, "strides with a number"),
    "layout": (conv(data_format="HWCN"), 3, "expected the data_format"),
    "equation": (placeholder("x", 2, 3) + node("m", "Einsum", "x", equation="ijk->i"), 2, "names 3 dimensions"),
    "k": (X + const("k", 9, np.int32) + node("m", "TopKV2", "x", "k"), 3, "expected k to be at most"),
    "mirror": (X + ints("p", 9, 9) + node("m", "MirrorPad", "x", "p", mode="REFLECT"), 3, "paddings up to 3"),
    "block": (IMAGE + node("m", "SpaceToDepth", "x", block_size=2), 2, "expects as many elements"),
    # -- placeholders
    "open length": (
        placeholder("x", -1, -1) + node("m", "Neg", "x"),
        1,
        "its shape is ?x?: say what is open with a feed",
    ),
    "no shape": (node("x", "Placeholder", dtype="DT_FLOAT") + node("m", "Neg", "x"), 1, "its shape is not declared"),
    "no type": (node("x", "Placeholder") + node("m", "Neg", "x"), 1, "the element type of 'x' is not known"),
    "placeholder of strings": (node("x", "Placeholder", dtype="DT_STRING") + node("m", "Neg", "x"), 1, "strings"),
    # -- operations
    "unknown": (X + node("m", "Relu7", "x"), 2, "the operation Relu7 is not supported, nor is it a function"),
    "variable": (node("v", "VarHandleOp") + node("m", "ReadVariableOp", "v"), 1, "freeze the graph"),
    "nothing": (X + node("n", "NoOp") + node("m", "Neg", "n"), 2, "it has no outputs"),
    # -- control flow
    "merge": (X + Y + node("m", "Merge", "x", "y"), 3, "do not come from the two sides of one Switch"),
    "exit": (X + node("m", "Exit", "x"), 2, "expected the first output of a Switch of a loop"),
    "frame": (X + node("e", "Enter", "x") + node("m", "Neg", "e"), 2, "the attribute frame_name"),
    "endless function": (X + node("m", "f", "x") + FUNCTION("f"), 4, "calls itself"),
    "wrong in a function": (X + node("m", "f", "x") + FUNCTION("MatMul"), 4, "node 'n' (MatMul) of function 'f'"),
    "other shape": (X + node("m", "EnsureShape", "x", shape=[5]), 2, "expected the shape [5]"),
    "arguments": (X + node("m", "f", "x", "x") + FUNCTION("Neg"), 2, "takes 1 argument, got 2"),
    "no function": (X + node("m", "PartitionedCall", "x"), 2, "expected the attribute f"),
    "list without a shape": (
        ints("s", -1)
        + const("n", 3, np.int32)
        + node("l", "TensorListReserve", "s", "n", element_dtype="DT_FLOAT")
        + node("m", "TensorListStack", "l", "s"),
        4,
        "the list is read before anything is written",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_message_has_node_and_place(name: str) -> None:
    text, line, message = WRONG[name]
    start = time.process_time()
    with pytest.raises(CompileError) as raised:
        import_graph(text.encode(), "wrong.pbtxt")
    assert message in str(raised.value)
    assert (raised.value.file_name, raised.value.line) == ("wrong.pbtxt", line)
    assert time.process_time() - start < 10


def test_functions_that_double_do_not_go_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator, "MAX_OPERATIONS", 2000)
    functions = "".join(
        f'function {{ signature {{ name: "f{index}" input_arg {{ name: "a" type: DT_FLOAT }} '
        f'output_arg {{ name: "b" type: DT_FLOAT }} }} '
        f'node_def {{ name: "n" op: "f{index + 1}" input: "a" }} '
        f'node_def {{ name: "m" op: "f{index + 1}" input: "n" }} '
        'ret { key: "b" value: "m:y:0" } }\n'
        for index in range(40)
    )
    with pytest.raises(CompileError, match="more than 2000 nodes"):
        import_graph(f"{X}{node('m', 'f0', 'x')}library {{ {functions} {LEAF} }}".encode(), "wrong.pbtxt")


LEAF = (
    'function { signature { name: "f40" input_arg { name: "a" type: DT_FLOAT } '
    'output_arg { name: "b" type: DT_FLOAT } } node_def { name: "m" op: "Neg" input: "a" } '
    'ret { key: "b" value: "m:y:0" } }'
)


def test_binary_graphs_have_a_line_for_each_node() -> None:
    data = parse_text(X + Y + node("m", "Mul", "x")).SerializeToString()  # type: ignore[attr-defined]
    with pytest.raises(CompileError, match="expected 2 inputs, got 1") as raised:
        import_graph(data, "wrong.pb")
    assert str(raised.value).splitlines()[1:] == ["  m = Mul(x)", "  ^"]
    assert raised.value.line == 3


def test_cut_off() -> None:
    data = parse_text(X + node("m", "Neg", "x")).SerializeToString()  # type: ignore[attr-defined]
    with pytest.raises(CompileError, match=r"cut off or something else.*SavedModel.*jax\.export"):
        import_graph(data[:-3], "wrong.pb")


@pytest.mark.parametrize(
    ("feeds", "fetches", "message"),
    [
        (["z"], [], "there is no node 'z' to feed"),
        ([], ["Mu1"], "there is no node 'Mu1' to fetch; did you mean Mul"),
        (["x", "x:0"], [], "'x' is fed twice"),
        (["x=4y"], [], "expected a shape such as"),
        (["x=5"], [], "it is fed with the shape 5, and declared as 4"),
        (["x=4xf99"], [], "there is no type f99"),
        (["Mul=4"], ["Mul"], "is not known: feed it as Mul=4x3xf32"),
        ([], ["Mul:1"], "'Mul:1' is wanted"),
    ],
)
def test_wrong_feeds_and_fetches(feeds: list[str], fetches: list[str], message: str) -> None:
    text = X + node("Mul", "Mul", "x", "x")
    with pytest.raises(ValueError, match=message):
        import_graph(text.encode(), "wrong.pbtxt", feeds, fetches)


GOOD = (X + Y + ints("s", 2, -1) + node("m", "Mul", "x", "y") + node("r", "Reshape", "m", "s", T="DT_FLOAT")).encode()
BINARY = parse_text(GOOD.decode()).SerializeToString()  # type: ignore[attr-defined]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.sampled_from([GOOD, BINARY]), st.data())
def test_altered_files_are_refused_or_translated(data: bytes, draw: st.DataObject) -> None:
    altered = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        start = draw.draw(st.integers(0, len(altered)))
        altered[start : start + draw.draw(st.integers(0, 3))] = draw.draw(st.binary(max_size=3))
    try:
        import_graph(bytes(altered), "altered")
    except PumiceError:
        pass
