"""GraphDefs become programs: feeds, fetches, and errors that name nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pumice
from pumice.compiler.codegen.target import Target
from pumice.compiler.dialects.text import to_text
from pumice.compiler.graphdef.importer import import_graph
from pumice.compiler.graphdef.messages import parse_text
from pumice.compiler.pipeline import compile_graph

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

SIMPLE_MUL = Path(__file__, "../../../../examples/simple_mul/simple_mul.pbtxt").resolve()


def test_walkthroughs_graph_text_and_binary() -> None:
    data = SIMPLE_MUL.read_bytes()
    operations, _ = import_graph(data, "simple_mul.pbtxt")
    text = to_text(operations)
    assert "func.func @simple_mul(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32>" in text
    assert "stablehlo.multiply %arg0, %arg1 : tensor<4xf32>" in text
    binary = parse_text(data.decode()).SerializeToString()  # type: ignore[attr-defined]
    assert to_text(import_graph(binary, "simple_mul.pb")[0]) == text


@pytest.mark.vulkan
def test_walkthroughs_graph_runs() -> None:
    module = compile_graph(SIMPLE_MUL.read_bytes(), "simple_mul.pbtxt", Target()).module
    with pumice.Session() as session:
        session.load(module)
        a, b = np.arange(4, dtype=np.float32), np.full(4, 2.5, np.float32)
        np.testing.assert_array_equal(session.call("simple_mul.simple_mul", a, b), a * b)
