"""Inputs of TensorFlow's operations, the same each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Case: TypeAlias = tuple[Callable[..., Any], Sequence[Array]]


def floats(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Normal numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(dtype)


def positive(*shape: int) -> Array:
    """Numbers of at least 0.1."""
    return np.abs(floats(*shape)) + np.float32(0.1)


def unit(*shape: int) -> Array:
    """Numbers between -0.95 and 0.95."""
    return np.random.default_rng(sum(shape)).uniform(-0.95, 0.95, shape).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 10, dtype: npt.DTypeLike = np.int32) -> Array:
    """Integers."""
    return np.random.default_rng(sum(shape) + 2).integers(low, high, shape).astype(dtype)


def nonzero(*shape: int) -> Array:
    """Integers without 0."""
    found = whole(*shape)
    return np.where(found == 0, 3, found).astype(np.int32)


def truths(*shape: int) -> Array:
    """Booleans."""
    return whole(*shape) > 0


def complexes(*shape: int) -> Array:
    """Complex numbers."""
    return (floats(*shape) + 1j * floats(*shape)[::-1]).astype(np.complex64)
