"""Wrong stage files: each is refused with its place, the line and a caret, or makes a module."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

import pytest
from support.compiler import walkthrough
from support.compiler.tensor_programs import BATCH, CHOICE, LAYER, POWERS

from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import GraphFile, ModuleFile, Program

_TOKEN = re.compile(r"%[A-Za-z0-9_#]+|@[A-Za-z0-9_]+|[A-Za-z_][A-Za-z0-9_.]*|-?[0-9]+|[^\sA-Za-z0-9]|\s+")


LOOP = walkthrough.loop_program(walkthrough.PAGE.read_text(encoding="utf-8"))


BYTES = """
func.func @main(%x: tensor<5xi8>) -> tensor<5xi8> {
  %0 = stablehlo.add %x, %x : tensor<5xi8>
  return %0 : tensor<5xi8>
}
"""


def stages_of(text: str, with_locations: bool = False) -> Mapping[str, str]:
    """A program's text at each stage."""
    found: dict[str, str] = {}

    def reached(stage: str, program: Program | GraphFile | ModuleFile) -> None:
        found[stage] = program.text(with_locations)

    compile_text(text, "program.mlir", Target(kinds=("vulkan", "reference")), reached=reached)
    return found


WRONG = [
    (
        "canonical",
        "stablehlo.multiply %iterArg_0, %cst",
        "stablehlo.multiply %iterArg_0, %c",
        "is used as tensor<4xf32>",
    ),
    ("canonical", "func.func @main", "func.func private @main", "a public function with a body"),
    ("regions", "dense<[4, 1, 1]> : tensor<3xi32>", "dense<[4, 1]> : tensor<2xi32>", "is used as tensor<3xi32>"),
    ("regions", "iree.return", "stablehlo.return", "iree.return at its end"),
    ("hl_seq", "_rgn_dispatch_1[%", "_rgn_dispatch_7[%", "an entry point of an executable of this program"),
    ("hl_seq", "iree_hl_seq.return %", "iree_ll_seq.return %", "iree_hl_seq.return at its end"),
    ("hl_seq", "iree.load_input(%arg0", "iree.load_input(%arg1", "is used as|a load of each of its first arguments"),
    ("ll_seq", "lifetime = [", "lifetime = [9, ", "a lifetime of two steps in order"),
    ("ll_seq", "offset = 256", "offset = 512", "an offset of whole words such that it ends in memref<512xi8>"),
    ("ll_seq", '"iree_ll_seq.alloc_flag"', '"iree_ll_seq.alloc_heap"', "a buffer of iree_ll_seq.alloc_flag"),
    ("ll_seq", "iree_ll_seq.repeat", "iree_ll_seq.rep", "syntax of iree_ll_seq.rep is not known"),
    ("ll_seq", "iree_ll_seq.return %1", "iree_ll_seq.return %arg0", "to return each buffer of iree_ll_seq.alloc_heap"),
    ("ll_seq of bytes", "](%2, %2)", "](%2, %0)", "to write a result that ends within a word by a copy"),
    ("targets", "workgroup_count = array<i64: 1, 1, 1>", "workgroup_count = array<i64: 1, 1>", "three numbers"),
    ("targets", "{size = 16 : i64, write}", "{size = 64 : i64, write}", "bytes at least"),
    ("targets", "iree.executable(SPIRV)", "iree.executable(Unspecified)", "the target SPIRV or Reference"),
]


@pytest.mark.parametrize(("stage", "old", "new", "message"), WRONG)
def test_what_no_pass_makes_is_refused_with_its_place(stage: str, old: str, new: str, message: str) -> None:
    stage, _, which = stage.partition(" of ")
    program = BYTES if which else LOOP if stage == "ll_seq" else POWERS
    text = stages_of(program)[stage]
    assert old in text
    with pytest.raises(CompileError, match=message) as caught:
        compile_text(text.replace(old, new, 1), "stage.mlir", Target(), from_=stage)
    place = f"stage.mlir:{caught.value.line}:{caught.value.column}: "
    assert caught.value.message.startswith(place) and caught.value.message.endswith("^")


def mutated(text: str, choose: random.Random) -> str:
    """Moves, repeats, drops or replaces a few tokens or lines of a text."""
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        parts = text.splitlines(keepends=True) if choose.random() < 0.3 else _TOKEN.findall(text)
        one, other = choose.randrange(len(parts)), choose.randrange(len(parts))
        numbers = [index for index, part in enumerate(parts) if part.lstrip("-").isdigit()]
        match choose.randrange(5):
            case 0:
                del parts[one]
            case 1:
                parts.insert(one, parts[other])
            case 2:
                parts[one] = parts[other]
            case 3:
                parts[one], parts[other] = parts[other], parts[one]
            case 4 if numbers:
                parts[choose.choice(numbers)] = choose.choice(("0", "1", "-1", "3", "4294967296", "9" * 30))
        text = "".join(parts)
    return text


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "program", [LAYER, POWERS, CHOICE, LOOP, BATCH], ids=["layer", "powers", "choice", "loop", "batch"]
)
def test_any_stage_file_is_compiled_or_refused(program: str) -> None:
    choose = random.Random(program)
    refused = 0
    for stage, text in stages_of(program, with_locations=True).items():
        if stage in ("hlo", "module"):
            continue
        for _ in range(25):
            try:
                compile_text(mutated(text, choose), "stage.mlir", Target(), from_=stage)
            except CompileError as error:
                refused += 1
                assert re.match(r"(stage|program)\.mlir:[0-9]+:[0-9]+: ", error.message), error.message
                assert error.message.endswith("^"), error.message
    assert refused > 50
