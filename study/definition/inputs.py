"""Arrays for a kernel's bindings, from their descriptions in a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ...formats.element_type import parse_shape_and_type
from ...runtime.values.parse import parse_value
from ...status import InvalidArgumentError

__all__ = ["make_array", "make_arrays"]

Array = np.ndarray


def make_arrays(bindings: Sequence[object], dtype: str, folder: Path, seed: int) -> tuple[Array, ...]:
    """An array for each description: see ``make_array``; random ones differ from each other and are the same in each run."""
    return tuple(
        make_array(one, dtype, folder, np.random.default_rng((seed, index)), f"bindings[{index}]")
        for index, one in enumerate(bindings)
    )


def make_array(description: object, dtype: str, folder: Path, random: np.random.Generator, where: str) -> Array:
    """An array of the host.

    Args:
        description: text as ``pumice run --binding`` takes it (``"4xf32=1,2,3,4"``, ``"@file.npy"``), or a table with ``shape`` (an int
            or several), ``dtype`` (text such as ``f32``) and ``init``: ``"random"`` (floats in [0, 1), integers below
            2^16), ``"zeros"``, ``"arange"``, a number, or ``"@file.npy"``.
        dtype: of tables that have none.
        folder: what file names start from.
        random: where random numbers come from.
        where: for messages.

    Raises:
        InvalidArgumentError: a description that is none, or a file of another shape or dtype.
        NotFoundError: no such file.
    """
    if isinstance(description, str):
        value = parse_value(_with_folder(description, folder))
        if not isinstance(value, np.ndarray):
            raise InvalidArgumentError(f"{where}: expected an array such as 4xf32=1,2,3,4, got {description!r}")
        return value
    if not isinstance(description, Mapping):
        raise InvalidArgumentError(f"{where}: expected a table or text, got {type(description).__name__}")
    shape = description.get("shape", ())
    lengths = [shape] if isinstance(shape, int) else list(shape)
    name = str(description.get("dtype") or dtype)
    text = "x".join([*(str(length) for length in lengths), name])
    extents, element_type = parse_shape_and_type(text)
    kind = element_type.require_dtype()
    init = description.get("init", "random")
    if isinstance(init, str) and init.startswith("@"):
        value = parse_value(_with_folder(f"{text}={init}" if not init.endswith((".npy", ".npz")) else init, folder))
        if not isinstance(value, np.ndarray) or value.shape != tuple(extents) or value.dtype != kind:
            raise InvalidArgumentError(
                f"{where}: expected {tuple(extents)} of {kind}, the file {init[1:]} has "
                f"{getattr(value, 'shape', '')} of {getattr(value, 'dtype', type(value).__name__)}"
            )
        return value
    if isinstance(init, (int, float)) and not isinstance(init, bool):
        return np.full(extents, init, kind)
    match init:
        case "zeros":
            return np.zeros(extents, kind)
        case "arange":
            return np.arange(int(np.prod(extents))).astype(kind).reshape(extents)
        case "random":
            return _random(tuple(extents), kind, random)
    raise InvalidArgumentError(f'{where}.init is "random", "zeros", "arange", a number or "@file.npy"; got {init!r}')


def _random(shape: tuple[int, ...], dtype: np.dtype[np.generic], random: np.random.Generator) -> Array:
    if dtype.kind in "iu":
        # Of the first bits alone where the type is wide, so that sums stay in range.
        most = (1 << (8 * dtype.itemsize - (dtype.kind == "i"))) - 1
        return random.integers(0, min(most, 1 << 16), shape, dtype=np.int64).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    return random.random(shape, np.float32).astype(dtype)


def _with_folder(text: str, folder: Path) -> str:
    head, at, name = text.partition("@")
    return f"{head}@{folder / name}" if at and not Path(name).is_absolute() else text
