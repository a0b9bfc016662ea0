"""The definition of each operation in NumPy, against which devices are tested.

Operations and their constraints are those of StableHLO's specification (``docs/spec.md``). If the specification leaves
the order or the accuracy open, this is one of the permitted results: reductions are pairwise, and transcendental
functions are rounded from double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from .elementwise import ELEMENTWISE, is_float, structural
from .linear_algebra import cholesky, convolution, dot_general, triangular_solve
from .program import Array, Body, Definition, Evaluator, Node
from .random_bits import rng_bit_generator
from .reductions import REDUCTIONS, shaped
from .structures import STRUCTURES


def _while(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    condition, body = node.bodies
    values = list(operands)
    while bool(evaluator.run(condition, values)[0]):
        values = evaluator.run(body, values)
    return values


def _if(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    return evaluator.run(node.bodies[0 if operands[0] else 1], ())


def _case(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    index = int(operands[0])
    return evaluator.run(node.bodies[index if 0 <= index < len(node.bodies) else -1], ())


def _map(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    return shaped(node, evaluator.run(node.bodies[0], operands))


def _fft(node: Node, operands: Sequence[Array]) -> Array:
    (value,) = operands
    kind, length = node.attributes["fft_type"], node.attributes["fft_length"]
    axes = range(value.ndim - len(length), value.ndim)
    if 0 in node.types[0].shape or 0 in value.shape:
        return np.zeros(node.types[0].shape, node.types[0].dtype)
    functions: Mapping[str, Callable[..., Array]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return functions[kind](wide, length, tuple(axes)).astype(node.types[0].dtype)


def _same(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    return list(operands)


def _rng(node: Node, operands: Sequence[Array]) -> Array:
    (spec,) = node.types
    generator = np.random.default_rng(0)
    low, high = operands[0], operands[1]
    if node.attributes["rng_distribution"] == "NORMAL":
        return generator.normal(float(low), float(high), spec.shape).astype(spec.dtype)
    if is_float(spec.dtype):
        return generator.uniform(float(low), float(high), spec.shape).astype(spec.dtype)
    return generator.integers(int(low), int(high), spec.shape).astype(spec.dtype)


def _token(node: Node, operands: Sequence[Array]) -> Array:
    return np.zeros(0, np.uint8)


DEFINITIONS: Final[Mapping[str, Definition]] = {
    **ELEMENTWISE,
    **STRUCTURES,
    **REDUCTIONS,
    "after_all": structural(_token),
    "case": _case,
    "cholesky": structural(lambda node, operands: cholesky(operands[0], bool(node.attributes.get("lower")))),
    "convolution": structural(convolution),
    "create_token": structural(_token),
    "dot_general": structural(dot_general),
    "fft": structural(_fft),
    "if": _if,
    "map": _map,
    "optimization_barrier": _same,
    "partition_id": structural(lambda node, operands: np.zeros((), np.uint32)),
    "replica_id": structural(lambda node, operands: np.zeros((), np.uint32)),
    "rng": structural(_rng),
    "rng_bit_generator": rng_bit_generator,
    "triangular_solve": structural(triangular_solve),
    "while": _while,
}
"""Definitions by name of the operation, without the dialect. Integer operations wrap around."""


def evaluate(body: Body, arguments: Sequence[Array]) -> list[Array]:
    """Evaluates a body; returns its results as arrays of the declared types."""
    with np.errstate(all="ignore"):
        return Evaluator(DEFINITIONS).run(body, arguments)
