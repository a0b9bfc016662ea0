"""Control flow of both kinds, on the reference device: Switch, Merge and frames; functions of the library."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.graphdefs import const, node, placeholder, run

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

X = np.array([1, -2, 3], np.float32)
ARGUMENTS = placeholder("p", dtype="DT_BOOL") + placeholder("x", 3)

COND = (
    ARGUMENTS
    + node("pred", "Identity", "p")
    + node("s", "Switch", "x", "pred")
    + node("t", "Identity", "s:1")
    + const("two", 2).replace('op: "Const"', 'op: "Const" input: "^t"')
    + node("double", "Mul", "t", "two")
    + node("negated", "Neg", "s")
    + node("m", "Merge", "negated", "double")
    + node("y", "Identity", "m")
    + node("index", "Identity", "m:1")
)


@pytest.mark.parametrize("truth", [False, True])
def test_merge_takes_the_side_of_the_predicate(truth: bool) -> None:
    y, index = run(COND, p=np.array(truth), x=X)
    np.testing.assert_array_equal(y, X * 2 if truth else -X)
    assert index == truth


def test_a_known_predicate_leaves_one_side() -> None:
    text = COND.replace(placeholder("p", dtype="DT_BOOL"), const("p", True, np.bool_))
    np.testing.assert_array_equal(run(text, fetches=["y"], x=X), X * 2)


def test_a_side_of_a_switch_is_no_result() -> None:
    with pytest.raises(ValueError, match="only on one side of a Switch"):
        run(COND, fetches=["double"], p=np.array(True), x=X)


@pytest.mark.slow
def test_nested_conditionals() -> None:
    """``(q ? x + 1 : -x)`` where p, else ``x * x``; q is switched by p, too."""
    text = (
        placeholder("p", dtype="DT_BOOL")
        + placeholder("q", dtype="DT_BOOL")
        + placeholder("x", 3)
        + node("s", "Switch", "x", "p")
        + node("qs", "Switch", "q", "p")
        + node("inner", "Switch", "s:1", "qs:1")
        + const("one", 1).replace('op: "Const"', 'op: "Const" input: "^inner"')
        + node("more", "Add", "inner:1", "one")
        + node("less", "Neg", "inner")
        + node("m", "Merge", "less", "more")
        + node("square", "Square", "s")
        + node("y", "Merge", "square", "m")
    )
    for p in (False, True):
        for q in (False, True):
            found = run(text, fetches=["y"], p=np.array(p), q=np.array(q), x=X)
            np.testing.assert_array_equal(found, (X + 1 if q else -X) if p else X * X)


def frame(name: str, variables: str, is_constant: bool = False) -> str:
    return node(name, "Enter", variables, frame_name="loop", is_constant=is_constant)


def counted(limit: str, variable: str, start: str, *body: str) -> str:
    """A loop of a counter ``i`` up to a limit and of a variable, whose next value the body computes as ``next``."""
    return (
        const("zero", 0, np.int32)
        + frame("i_enter", "zero")
        + frame("v_enter", start)
        + frame("limit_enter", limit, True)
        + node("i", "Merge", "i_enter", "i_next")
        + node("v", "Merge", "v_enter", "v_next")
        + node("less", "Less", "i", "limit_enter")
        + node("go", "LoopCond", "less")
        + node("i_switch", "Switch", "i", "go")
        + node("v_switch", "Switch", "v", "go")
        + const("one", 1, np.int32).replace('op: "Const"', 'op: "Const" input: "^i_switch"')
        + node("i_more", "Add", "i_switch:1", "one")
        + "".join(body)
        + node("i_next", "NextIteration", "i_more")
        + node("v_next", "NextIteration", "next")
        + node(variable, "Exit", "v_switch")
    )


LOOP = (
    placeholder("n", dtype="DT_INT32")
    + placeholder("x", 3)
    + placeholder("w", 3)
    + frame("w_enter", "w", True)
    + counted("n", "y", "x", node("next", "Mul", "v_switch:1", "w_enter"))
    + node("count", "Exit", "i_switch")
)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_frames(count: int) -> None:
    w = np.array([1, 2, 0.5], np.float32)
    y, found = run(LOOP, n=np.array(count, np.int32), x=X, w=w)
    assert found == count
    np.testing.assert_array_equal(y, X * w**count)


def function(name: str, arguments: dict[str, str], results: dict[str, str], *nodes: str) -> str:
    text = f'function {{ signature {{ name: "{name}"'
    text += "".join(f' input_arg {{ name: "{key}" type: {type} }}' for key, type in arguments.items())
    text += "".join(f' output_arg {{ name: "{key}" type: DT_FLOAT }}' for key in results) + " }"
    text += "".join(f" node_def {each.removeprefix('node')}" for each in nodes)
    return text + "".join(f' ret {{ key: "{key}" value: "{value}" }}' for key, value in results.items()) + " }\n"


def called(name: str, op: str, *inputs: str, **functions: str) -> str:
    """A node whose attributes are functions; several are separated by commas."""
    text = f'node {{ name: "{name}" op: "{op}"' + "".join(f' input: "{each}"' for each in inputs)
    for key, value in functions.items():
        names = [f'func {{ name: "{each}" }}' for each in value.split(",")]
        shown = f"list {{ {' '.join(names)} }}" if len(names) > 1 else names[0]
        text += f' attr {{ key: "{key}" value {{ {shown} }} }}'
    return text + " }\n"


FUNCTIONS = (
    "library {\n"
    + function("twice", {"x": "DT_FLOAT"}, {"y": "s:z:0"}, node("s", "Add", "x", "x"))
    + function("minus", {"x": "DT_FLOAT"}, {"y": "s:y:0"}, node("s", "Neg", "x"))
    + function(
        "first_of",
        {"x": "DT_FLOAT"},
        {"y": "t:values:0"},
        const("k", 1, np.int32),
        node("t", "TopKV2", "x", "k:output:0"),
    )
    + function(
        "going", {"i": "DT_INT32", "v": "DT_FLOAT", "n": "DT_INT32"}, {"y": "l:z:0"}, node("l", "Less", "i", "n")
    )
    + function(
        "step",
        {"i": "DT_INT32", "v": "DT_FLOAT", "n": "DT_INT32"},
        {"a": "j:z:0", "b": "w:y:0", "c": "n"},
        const("one", 1, np.int32),
        node("j", "Add", "i", "one:output:0"),
        called("w", "PartitionedCall", "v", f="twice"),
    )
    + "}\n"
)


@pytest.mark.parametrize("op", ["If", "StatelessIf"])
@pytest.mark.parametrize("truth", [False, True])
def test_if(op: str, truth: bool) -> None:
    text = FUNCTIONS + ARGUMENTS + called("y", op, "p", "x", then_branch="twice", else_branch="minus")
    np.testing.assert_array_equal(run(text, p=np.array(truth), x=X), X * 2 if truth else -X)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
def test_case(index: int) -> None:
    """An index past the branches takes the last one."""
    text = placeholder("i", dtype="DT_INT32") + placeholder("x", 3) + FUNCTIONS
    text += called("y", "StatelessCase", "i", "x", branches="twice,minus,minus")
    np.testing.assert_array_equal(run(text, i=np.array(index, np.int32), x=X), X * 2 if index == 0 else -X)


def test_while_with_a_variable_that_stays() -> None:
    text = placeholder("x", 3) + placeholder("n", dtype="DT_INT32") + const("zero", 0, np.int32) + FUNCTIONS
    text += called("w", "StatelessWhile", "zero", "x", "n", cond="going", body="step")
    count, y, n = run(text, x=X, n=np.array(3, np.int32))
    assert (count, n) == (3, 3)
    np.testing.assert_array_equal(y, X * 8)


def test_calls_by_name_and_by_attribute() -> None:
    text = placeholder("x", 3) + FUNCTIONS + node("a", "twice", "x") + called("y", "PartitionedCall", "a", f="first_of")
    np.testing.assert_array_equal(run(text, x=X), [6])


LISTS = (
    placeholder("x", 4, 3)
    + const("size", 4, np.int32)
    + const("open", -1, np.int32)
    + node("l", "TensorListReserve", "open", "size", element_dtype="DT_FLOAT")
    + frame("x_enter", "x", True)
    + counted(
        "size",
        "out",
        "l",
        node("row", "TensorListGetItem", "x_enter", "i_switch:1", "open", element_dtype="DT_FLOAT"),
        node("negated", "Neg", "row"),
        node("next", "TensorListSetItem", "v_switch:1", "i_switch:1", "negated", element_dtype="DT_FLOAT"),
    )
    + node("y", "TensorListStack", "out", "open", element_dtype="DT_FLOAT")
)


def test_a_list_gets_its_shape_from_the_loop_that_fills_it() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run(LISTS, x=x), -x)
