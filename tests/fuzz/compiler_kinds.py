"""Tensor programs, stage files and graphs with damage: of characters, or words exchanged for others of their kind."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from judging import ODD_NUMBERS, SeededCases, text_cases
from mutations import mutate, plain_base
from support.case_pool import Cases
from support.compiler.graphdefs import const, node, placeholder
from support.compiler.tensor_programs import CHOICE, LAYER, POWERS, SIMPLE_MUL
from support.compiler.varied_programs import VARIED

from pumice.compiler.dialects.syntax.text import READ
from pumice.compiler.frontends.graphdef.file.messages import parse_text
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.origin import Origin
from pumice.compiler.pipeline import compile_data, compile_text
from pumice.compiler.stages import GraphFile, ModuleFile, Program

PROGRAMS: Final = Path(__file__).resolve().parents[1] / "conformance" / "programs"
# Of arith, math, tensor, scf and cf, and of lengths that are not known.
OTHERS: Final = (
    *("branch_on_data", "collatz", "collatz_scalar", "concatenate", "dynamic_add", "dynamic_slice", "internal_calls"),
    *("jacobi", "nested_loops", "newton", "pad", "population_count", "scalar_math", "slice"),
)
TEXTS: Final = (
    *(SIMPLE_MUL, LAYER, POWERS, CHOICE, *VARIED),
    *((PROGRAMS / f"{name}.mlir").read_text() for name in OTHERS),
)
KEPT: Final = tuple(
    path.read_text() for path in sorted((Path(__file__).parent / "corpus" / "tensor-program").iterdir())
)
_DIALECTS: Final = ("stablehlo.", "chlo.", "func.", "arith.", "math.", "tensor.", "scf.", "cf.")
OPERATIONS: Final = tuple(name for name in READ if name.startswith(_DIALECTS))
TYPES: Final = (
    *("tensor<f32>", "tensor<4xf32>", "tensor<2x3xf32>", "tensor<0xf32>", "tensor<1x1xf64>", "tensor<?xf32>"),
    *("tensor<4xi1>", "tensor<i1>", "tensor<3xi64>", "tensor<4xi4>", "tensor<4xf8E4M3FN>", "tensor<2xcomplex<f32>>"),
    *("tensor<4xui8>", "tensor<i32>", "tensor<4xindex>", "tensor<4xf16>", "f32", "i64", "memref<4xf32>", "tuple<>"),
    *("!stablehlo.token", "tensor<2x!quant.uniform<i8:f32, 0.5>>", "tensor<1000000x1000000xf32>"),
)
_KINDS: Final = (
    (re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>"), TYPES),
    (re.compile(r"\b(?:stablehlo|chlo|func|arith|math|tensor|scf|cf)\.[a-z_0-9]+"), OPERATIONS),
    (re.compile(r"%[A-Za-z_0-9#]+"), ()),
    (re.compile(r"-?\b[0-9]+\b"), ODD_NUMBERS),
    (re.compile(r"\b[A-Z_]{2,}\b|\b(?:true|false|array|dense|dims|dim|sizes|low|init|across)\b"), ()),
    (re.compile(r"\n[^\n]*"), ()),
    (re.compile(r"[\[\](){}<>=,:]"), ()),
)
"""Kinds of words, each with others than those of the text to take their places."""


def _exchanged(rng: random.Random, texts: Sequence[str]) -> str:
    """A text with words, or whole lines, in the places of others of their kind: most of it is right."""
    text = rng.choice(texts)
    for _ in range(rng.choice((1, 1, 2, 3))):
        pattern, others = rng.choice(_KINDS)
        found = list(pattern.finditer(text))
        if not found:
            continue
        place = rng.choice(found)
        piece = rng.choice(others) if others and rng.random() < 0.5 else rng.choice(found)[0]
        if rng.random() < 0.1:
            piece = rng.choice(("", piece * 2))
        text = text[: place.start()] + piece + text[place.end() :]
    return text


def _compile(text: str) -> None:
    compile_text(text, "fuzz.mlir", Target())


def open_tensor_program(folder: Path) -> Cases:
    texts = (*TEXTS, *KEPT)
    return text_cases(texts, (*OPERATIONS, *TYPES), _compile, forge=lambda rng: _exchanged(rng, texts), forged=0.7)


# -- stage files ---------------------------------------------------------------------------------------


def open_stage_file(folder: Path) -> Cases:
    """Programs at the stages after the first, with locations; each text tells its stage."""
    texts: list[str] = []

    def reached(stage: str, program: Program | GraphFile | ModuleFile) -> None:
        if stage not in ("hlo", "module"):
            texts.append(program.text(True))

    for text in (SIMPLE_MUL, LAYER, POWERS, CHOICE, *VARIED):
        compile_text(text, "fuzz.mlir", Target(kinds=("vulkan", "reference")), reached=reached)
    return text_cases(texts, (*OPERATIONS, *TYPES), _compile, forge=lambda rng: _exchanged(rng, texts), forged=0.7)


# -- graphs --------------------------------------------------------------------------------------------


def _graphs() -> list[str]:
    weights = np.arange(12, dtype=np.float32).reshape(4, 3)
    image = placeholder("x", 1, 8, 8, 3)
    kernel = const("k", np.ones((3, 3, 3, 4)), np.float32)
    conv = node("c", "Conv2D", "x", "k", strides=[1, 2, 2, 1], padding="SAME", T="DT_FLOAT")
    pool = node("p", "MaxPool", "c", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID", T="DT_FLOAT")
    layer = const("w", weights, np.float32) + const("b", [1, 2, 3], np.float32)
    return [
        placeholder("x", 4) + placeholder("y", 4) + node("m", "Mul", "x", "y", T="DT_FLOAT"),
        placeholder("x", 2, 4)
        + layer
        + node("m", "MatMul", "x", "w", T="DT_FLOAT", transpose_a=False, transpose_b=False)
        + node("a", "BiasAdd", "m", "b", T="DT_FLOAT")
        + node("s", "Softmax", "a", T="DT_FLOAT"),
        image + kernel + conv + node("r", "Relu6", "c", T="DT_FLOAT"),
        image + kernel + conv + pool + const("d", [1, 2], np.int32) + node("e", "Mean", "p", "d", T="DT_FLOAT"),
    ]


def _compile_graph(graph: str | bytes) -> None:
    data = graph.encode("utf-8", "surrogatepass") if isinstance(graph, str) else graph
    compile_data(data, "fuzz.pbtxt" if isinstance(graph, str) else "fuzz.pb", Target(), Origin("graphdef"))


def open_graph(folder: Path) -> Cases:
    """GraphDefs as text."""
    words = ("node", "attr", "input", "DT_FLOAT", "DT_INT32", "Relu", "MatMul", "Switch", "Merge", "StridedSlice", "^x")
    return text_cases(_graphs(), words, _compile_graph)


def open_binary_graph(folder: Path) -> Cases:
    """GraphDefs as protocol buffers."""
    bases = [
        plain_base(str(number), parse_text(text).SerializeToString(), "file") for number, text in enumerate(_graphs())
    ]

    class Graphs(SeededCases[bytes]):
        def input(self, seed: int, index: int) -> bytes:
            return mutate(bases, seed, index, "file").data

        def use(self, made: bytes) -> None:
            _compile_graph(made)

    return Graphs()
