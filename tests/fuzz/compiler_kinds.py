"""Tensor programs that are damaged: characters, and words exchanged for others of their kind."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Final

from case_pool import Cases
from judging import ODD_NUMBERS, text_cases
from support.tensor_programs import CHOICE, LAYER, POWERS, SIMPLE_MUL
from support.varied_programs import VARIED

from pumice.compiler.codegen.target import Target
from pumice.compiler.dialects.text import READ
from pumice.compiler.pipeline import compile_text

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
    (re.compile(r"-?\b[0-9]+\b"), ODD_NUMBERS[:16]),
    (re.compile(r"\b[A-Z_]{2,}\b|\b(?:true|false|array|dense|dims|dim|sizes|low|init|across)\b"), ()),
    (re.compile(r"\n[^\n]*"), ()),
    (re.compile(r"[\[\](){}<>=,:]"), ()),
)
"""Kinds of words, each with others than those of the text to take their places."""


def _forged(rng: random.Random) -> str:
    """A program with words, or whole lines, in the places of others of their kind: most of it is right."""
    text = rng.choice(TEXTS)
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
    return text_cases(TEXTS, (*OPERATIONS, *TYPES), _compile, forge=_forged, forged=0.7)
