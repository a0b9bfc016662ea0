"""Arrays for a kernel's bindings and a function's inputs, from their descriptions in a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...formats.element_type import format_shape, format_shape_and_type, parse_shape_and_type
from ...formats.image_format import ImageFormat
from ...runtime.kernels.parameters.block import pack_argument
from ...runtime.values.files import ValueFiles
from ...runtime.values.image_text import ImageSpec, element_type_of, is_image_text, parse_image_spec
from ...runtime.values.parse import parse_value
from ...runtime.values.sampler_text import parse_sampler
from ...spirv.reflection.reflection_types import BufferBlock
from ...status import InvalidArgumentError, shown

Array = np.ndarray


def make_arrays(
    bindings: Sequence[Any], dtype: str, folder: Path, seed: int, blocks: Sequence[BufferBlock | None] = ()
) -> tuple[Array | ImageSpec | dict[str, Any], ...]:
    """Makes an array for each description, an ``ImageSpec`` for an image, or the keywords of a sampler.

    Random contents differ from each other, not from run to run. ``blocks`` are the layouts of bindings that are
    described by their members.
    """
    made: list[Array | ImageSpec | dict[str, Any]] = []
    for index, binding in enumerate(bindings):
        where, block = f"bindings[{index}]", blocks[index] if index < len(blocks) else None
        if isinstance(binding, Mapping) and "block" in binding and block is not None:
            made.append(pack_argument(block, binding["block"], where))
        else:
            made.append(_make_binding(binding, dtype, folder, (seed, index), where))
    return tuple(made)


def _make_binding(
    description: str | Mapping[str, Any], dtype: str, folder: Path, seed: Sequence[int], where: str
) -> Array | ImageSpec | dict[str, Any]:
    if isinstance(description, str):
        if description.partition(":")[0].strip() == "sampler":
            return parse_sampler(description.partition(":")[2])
        text = with_folder(description, folder)
        if is_image_text(text):
            with ValueFiles() as files:
                spec = parse_image_spec(text, files)
                files.finish()
            return spec
    elif "format" in description:
        image_format = ImageFormat.parse(description["format"])
        shape, init = description["shape"], description.get("init", "random")
        grid = (shape,) if isinstance(shape, int) else tuple(shape)
        sampler = parse_sampler(description["sampler"]) if "sampler" in description else None
        if isinstance(init, str) and init.startswith("@"):
            text = f"{format_shape(grid)}x{image_format}={init}"
            read = cast("ImageSpec", _make_binding(text, dtype, folder, seed, where))
            return read._replace(sampler=sampler)
        kind = element_type_of(image_format.dtype).short_name
        whole = {"shape": [*grid, *image_format.texel_shape()], "dtype": kind, "init": init}
        data = make_array(whole, kind, folder, seed, where)
        return ImageSpec(where, grid, image_format, 1, data, is_picture=False, sampler=sampler)
    return make_array(description, dtype, folder, seed, where)


def make_array(
    description: str | Mapping[str, Any], dtype: str, folder: Path, seed: Sequence[int], where: str
) -> Array:
    """Makes a host array from a description that ``setting_types.BINDINGS`` or ``INPUTS`` has checked: a text as
    ``pumice run --binding`` takes it (``"4xf32=1,2,3,4"``, ``"@file.npy"``), or a table with ``shape``, ``dtype``
    and ``init``. ``init`` is ``"random"`` (floats in [0, 1), integers below 2^16), ``"zeros"``, ``"arange"``, a
    number, or ``"@file.npy"``; ``where`` is for messages.
    """
    if isinstance(description, Mapping) and "block" in description:
        raise InvalidArgumentError(f"{where}: only kernels have blocks")
    if isinstance(description, str):
        value = parse_value(with_folder(description, folder))
        if not isinstance(value, np.ndarray):
            raise InvalidArgumentError(f"{where}: expected an array such as 4xf32=1,2,3,4, got {shown(description)}")
        return value
    shape, init = description["shape"], description.get("init", "random")
    lengths = [shape] if isinstance(shape, int) else shape
    text = "x".join([*map(str, lengths), description.get("dtype") or dtype])
    extents, element_type = parse_shape_and_type(text)
    kind = element_type.require_dtype()
    if isinstance(init, str) and init.startswith("@"):
        value = parse_value(with_folder(init if init.endswith((".npy", ".npz")) else f"{text}={init}", folder))
        if not isinstance(value, np.ndarray) or value.shape != tuple(extents) or value.dtype != kind:
            raise InvalidArgumentError(
                f"{where}: expected {tuple(extents)} of {kind}, the file {init[1:]} has "
                f"{getattr(value, 'shape', '')} of {getattr(value, 'dtype', type(value).__name__)}"
            )
        return value
    try:
        if init == "random":
            return _random(tuple(extents), kind, np.random.default_rng(seed))
        if init == "arange":
            return np.arange(int(np.prod(extents))).astype(kind).reshape(extents)
        with np.errstate(invalid="raise"):
            return np.zeros(extents, kind) if init == "zeros" else np.full(extents, init, kind)
    except (ValueError, ArithmeticError) as error:
        raise InvalidArgumentError(f"{where}: {text} of {init} cannot be made: {error}") from None


def _random(shape: tuple[int, ...], dtype: np.dtype[np.generic], random: np.random.Generator) -> Array:
    if dtype.kind in "iu":
        # Small numbers keep sums in range.
        largest = (1 << (8 * dtype.itemsize - (dtype.kind == "i"))) - 1
        return random.integers(0, min(largest, 1 << 16), shape, dtype=np.int64).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    return random.random(shape, np.float32).astype(dtype)


def described_type(description: object) -> str | None:
    """Returns the shape and element type of a described binding or input, such as ``"64xf32"``; None for samplers, and
    where a file or a block's members define them.
    """
    if isinstance(description, Mapping):
        if "shape" not in description:
            return None
        shape = description["shape"]
        kind = description.get("format") or description.get("dtype") or "f32"
        return "x".join(map(str, [*([shape] if isinstance(shape, int) else shape), kind]))
    head = str(description).removeprefix("&").partition("=")[0]
    try:
        return format_shape_and_type(*parse_shape_and_type(head))
    except InvalidArgumentError:
        return head if head[:1].isdigit() and is_image_text(head) else None


def with_folder(text: str, folder: Path) -> str:
    """Makes the file name after ``@`` in a value's text relative to a folder."""
    head, at, name = text.partition("@")
    return f"{head}@{folder / name}" if at else text
