"""SPIR-V as text: kernels and shaders of another compiler survive the round trip word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.compiler.dialects.syntax.spirv_module import spirv_code, spirv_module
from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.compiler.ir.source import CompileError

SHADERS = sorted(Path(__file__).parents[4].glob("shaders/**/*.spv"))
MUL = next(path for path in SHADERS if path.name == "mul.spv")


@pytest.mark.parametrize("path", SHADERS, ids=lambda path: path.stem)
def test_a_shader_comes_back_word_by_word(path: Path) -> None:
    text = to_text([spirv_module(path.read_bytes())])
    (module,) = parse(text)
    assert spirv_code(module) == path.read_bytes()
    assert to_text([module]) == text


def test_a_kernel_is_written_as_the_walkthrough_does() -> None:
    text = to_text([spirv_module(MUL.read_bytes())])
    assert text.startswith('spv.module "Logical" "GLSL450" {\n')
    assert "spv.FMul %" in text and " : f32\n" in text
    assert ": !spv.ptr<vector<3xi32>, Input>\n" in text
    assert 'capabilities = ["Shader"]' in text


WRONG = [
    ("spv.FMul", "spv.FMull", "there is no instruction spv.FMull"),
    (" : f32\n", " : f16\n", "expected a type that is declared above, got f16"),
    (" : f32\n", "\n", "expected ':'"),
    ('"LocalSize"', '"LocalSise"', 'there is no ExecutionMode "LocalSise"'),
    ("spv.Return", "%99999 = spv.Return", "spv.Return has no result"),
    ("bound = ", "bound = 0 : i64, bounds = ", "expected bound = an integer from 1"),
    ('version = "1.', 'version = "2.', "expected version ="),
    ('["Shader"]', '["Shadder"]', "there is no capability Shadder"),
    ("spv.FunctionEnd", "spv.FunctionEnd %1", "expected an instruction such as spv.Return"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_what_is_no_shader_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    text = to_text([spirv_module(MUL.read_bytes())])
    assert old in text
    with pytest.raises(CompileError, match=message) as caught:
        parse(text.replace(old, new, 1), "x.mlir")
    assert caught.value.message.startswith(f"x.mlir:{caught.value.line}:{caught.value.column}: ")
    assert str(caught.value).endswith("^")


def test_ids_are_defined_once_and_all() -> None:
    text = to_text([spirv_module(MUL.read_bytes())])
    line = next(line for line in text.splitlines() if "spv.FMul" in line)
    with pytest.raises(CompileError, match="is defined twice"):
        parse(text.replace(line, f"{line}\n{line}"))
    with pytest.raises(CompileError, match="is not defined in this spv.module"):
        parse(text.replace(line, ""))
