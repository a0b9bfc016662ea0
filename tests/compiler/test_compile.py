"""``pumice.compile``: accepted sources, and errors for others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiler.tensor_programs import SIMPLE_MUL

import pumice
from pumice.status import InvalidArgumentError

GRAPH = Path(__file__).parents[2] / "examples" / "simple_mul" / "simple_mul.pbtxt"


def test_a_path_given_as_text_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="got .models/mul.mlir.; write Path"):
        pumice.compile("models/mul.mlir")


def test_one_name_may_stand_alone() -> None:
    pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")
    expected = pumice.compile(GRAPH, targets=("reference",), feeds=("Placeholder_1",), fetches=("Mul",))
    assert pumice.compile(GRAPH, targets="reference", feeds="Placeholder_1", fetches="Mul") == expected


def test_stages_have_the_names_of_the_command_line() -> None:
    assert pumice.compile(SIMPLE_MUL, from_="stablehlo") == pumice.compile(SIMPLE_MUL, from_="hlo")
    with pytest.raises(InvalidArgumentError, match="from_: expected one of stablehlo, graphdef, .*, got 'spirv'"):
        pumice.compile(SIMPLE_MUL, from_="spirv")
