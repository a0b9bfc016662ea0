"""A case of generated_kernels.py: a program, its arguments, what it computes, and what is aimed at. Not a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from kernel_body import Shape

Array = npt.NDArray[Any]

_NUMPY = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "i32": np.int32}


@dataclass(frozen=True)
class Goal:
    """What is aimed at on a CPU device; on a GPU the ratio is 1.0 everywhere.

    Attributes:
        ratio: of our time to that of iree-compile's module, at most.
        bandwidth: share of the measured bandwidth, at least.
        arithmetic: share of the measured arithmetic, at least.
    """

    ratio: float
    bandwidth: float | None = None
    arithmetic: float | None = None


MEMORY = Goal(0.8, bandwidth=0.8)
MATMUL = Goal(0.6, arithmetic=0.4)
CONVOLUTION = Goal(0.6)
ANY = Goal(1.0)


@dataclass(frozen=True)
class Case:
    """A program of one function, and its arguments.

    Attributes:
        text: StableHLO; its only public function is called.
        arguments: shape and element type of each.
        goal: what is aimed at.
        flops: floating-point operations, a multiply-add being two; 0 where they say nothing.
        definition: the results in NumPy, or None where the two sides are held against each other alone.
        values: of an argument, by its number and shape, where they are not normally distributed.
        tolerance: of results, relative to the largest.
        is_library: whether the definition is a call of a library that is written for speed.
    """

    text: str
    arguments: tuple[tuple[Shape, str], ...]
    goal: Goal
    flops: float = 0
    definition: Callable[..., Array] | None = None
    values: Callable[[np.random.Generator, int, Shape], Array | None] = field(default=lambda rng, number, shape: None)
    tolerance: float = 1e-4
    is_library: bool = False

    def arrays(self) -> list[Array]:
        """The arguments of a call, the same in every process."""
        rng = np.random.default_rng(1)
        made = []
        for number, (shape, type) in enumerate(self.arguments):
            chosen = self.values(rng, number, shape)
            made.append(rng.standard_normal(shape, np.float32).astype(_NUMPY[type]) if chosen is None else chosen)
        return made
