"""``pumice.compile``: accepted sources, equal files, and errors for others."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compiler.tensor_programs import LAYER, SIMPLE_MUL

import pumice
from pumice.compiler.ir.source import CompileError
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


@pytest.mark.parametrize("name", ["a-b", "a b", "a/b"])
def test_names_that_no_symbol_has_are_told_at_the_function(name: str) -> None:
    with pytest.raises(CompileError, match="x.mlir:1:1: func.func expects a name of letters, digits"):
        pumice.compile(
            f'func.func @"{name}"(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  return %x : tensor<2xf32>\n}}\n',
            file_name="x.mlir",
        )


def test_equal_programs_make_equal_files() -> None:
    assert pumice.compile(LAYER) == pumice.compile(LAYER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @f() { return }", "no public function with a body"),
        ("func.func @f() { return }\nfunc.func @f() { return }", "@f is defined twice"),
        ('"x.y"() : () -> ()', "expected functions in a module, got x.y"),
    ],
)
def test_what_is_no_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        pumice.compile(text)
