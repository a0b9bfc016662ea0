"""Replacement of operations that no single kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from ...dialects.builder import Builder, Values
from ...dialects.rewrite import rewrite_named
from ...ir.operation import Block, Operation
from ...kernels.scalars.target import Target
from .factorizations import cholesky, triangular_solve
from .random_bits import rng, rng_bit_generator
from .sorts import sort
from .transforms import fft


def decompose(block: Block, target: Target) -> None:
    """Replaces such operations in a block and its nested regions."""
    rewrite_named(block, {**_RULES, "stablehlo.sort": partial(sort, target)})


_RULES: Final[Mapping[str, Callable[[Builder, Operation], Values | None]]] = {
    "stablehlo.cholesky": cholesky,
    "stablehlo.fft": fft,
    "stablehlo.rng": rng,
    "stablehlo.rng_bit_generator": rng_bit_generator,
    "stablehlo.triangular_solve": triangular_solve,
}
