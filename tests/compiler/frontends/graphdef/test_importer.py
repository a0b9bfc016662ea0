"""GraphDefs become programs: feeds, fetches, and errors that name nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from support.compiler.graphdefs import const, node, placeholder, run

from pumice.compiler.dialects.syntax.text import to_text
from pumice.compiler.frontends.graphdef.file import messages
from pumice.compiler.frontends.graphdef.file.messages import parse_text
from pumice.compiler.frontends.graphdef.importer import import_graph
from pumice.status import UnavailableError

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

SIMPLE_MUL = Path(__file__, "../../../../../examples/simple_mul/simple_mul.pbtxt").resolve()


def test_walkthroughs_graph_text_and_binary() -> None:
    data = SIMPLE_MUL.read_bytes()
    operations, _ = import_graph(data, "simple_mul.pbtxt")
    text = to_text(operations)
    assert "func.func @simple_mul(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32>" in text
    assert "stablehlo.multiply %arg0, %arg1 : tensor<4xf32>" in text
    binary = parse_text(data.decode()).SerializeToString()  # type: ignore[attr-defined]
    assert to_text(import_graph(binary, "simple_mul.pb")[0]) == text


FEEDS = placeholder("x", -1, 3) + placeholder("y", 3) + const("two", 2)
FEEDS += node("default", "PlaceholderWithDefault", "two", dtype="DT_FLOAT")
FEEDS += node("sum", "Add", "x", "y") + node("scaled", "Mul", "sum", "default") + node("unused", "Neg", "y")
X = np.array([[1, 2, 3]], np.float32)
Y = np.array([4, 5, 6], np.float32)


def test_feeds_give_open_lengths_and_the_order() -> None:
    np.testing.assert_array_equal(run(FEEDS, "y", "x=1x3", fetches=["scaled"], y=Y, x=X), (X + Y) * 2)


def test_what_is_not_fed_follows_in_the_graphs_order() -> None:
    np.testing.assert_array_equal(run(FEEDS, "x=1x3", fetches=["scaled"], x=X, y=Y), (X + Y) * 2)


def test_a_default_is_fed_and_not_fed() -> None:
    found = run(FEEDS, "default=", "x=1x3", fetches=["scaled:0"], default=np.array(5, np.float32), x=X, y=Y)
    np.testing.assert_array_equal(found, (X + Y) * 5)


def test_a_feed_in_the_middle_leaves_out_what_is_before() -> None:
    np.testing.assert_array_equal(run(FEEDS, "sum=2x3xf32", fetches=["scaled"], s=np.ones((2, 3), np.float32)), 2)


def test_results_are_what_nobody_takes() -> None:
    scaled, unused = run(FEEDS, "x=1x3", x=X, y=Y)
    np.testing.assert_array_equal(scaled, (X + Y) * 2)
    np.testing.assert_array_equal(unused, -Y)


def test_fetches_may_repeat_and_be_arguments() -> None:
    first, second = run(FEEDS, fetches=["y", "unused"], y=Y)
    np.testing.assert_array_equal([first, second], [Y, -Y])


def test_what_is_not_fetched_may_be_unknown() -> None:
    text = FEEDS + node("words", "StringJoin", "x")
    np.testing.assert_array_equal(run(text, fetches=["unused"], y=Y), -Y)


def test_operations_have_the_names_and_lines_of_nodes() -> None:
    operations, source = import_graph(SIMPLE_MUL.read_bytes(), "simple_mul.pbtxt")
    (multiply,) = [each for each in operations[0].walk() if each.name == "stablehlo.multiply"]
    debug = multiply.location.debug
    assert debug is not None
    assert (debug.name, debug.file_name, debug.line) == ("Mul", "simple_mul.pbtxt", 25)
    assert source.place(multiply.location.offset) == (25, 1)


def test_messages_that_say_nothing_of_the_computation_are_passed_over() -> None:
    more = 'library { gradient { function_name: "f" gradient_func: "g" } } versions { producer: 21 }\n# a { comment\n'
    typed = node("n", "Neg", "y").replace(" }\n", " experimental_type { type_id: TFT_PRODUCT args { type_id: 9 } } }\n")
    np.testing.assert_array_equal(run(FEEDS + more + typed, fetches=["n"], y=Y), -Y)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    messages._graph_class.cache_clear()
    monkeypatch.setitem(sys.modules, "tensorboardX.proto", None)
    with pytest.raises(UnavailableError, match=r"pip install 'pumice\[graphdef\]'"):
        import_graph(SIMPLE_MUL.read_bytes(), "simple_mul.pbtxt")
