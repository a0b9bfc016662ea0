"""Programs from text to a module: names, equal files, and what is refused."""

from __future__ import annotations

import pytest
from support.compiler.tensor_programs import LAYER

from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text


def compiled(text: str) -> bytes:
    return compile_text(text, "x.mlir", Target()).module


@pytest.mark.parametrize("name", ["a-b", "a b", "a/b"])
def test_names_that_no_symbol_has_are_told_at_the_function(name: str) -> None:
    with pytest.raises(CompileError, match="x.mlir:1:1: func.func expects a name of letters, digits"):
        compiled(f'func.func @"{name}"(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  return %x : tensor<2xf32>\n}}\n')


def test_equal_programs_make_equal_files() -> None:
    assert compiled(LAYER) == compiled(LAYER)


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
        compiled(text)
