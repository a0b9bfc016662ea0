"""Conversions of arrays to the shape and the dtype of an image, and back."""

from __future__ import annotations

import numpy as np

from ...formats.image_format import ImageFormat
from ...formats.image_texels import from_texels, values_of
from ...status import InvalidArgumentError
from ..arrays.spec import check_dtype
from .layout import ImageLayout


def checked_shape(array: np.ndarray, layout: ImageLayout, image_format: ImageFormat, where: str) -> np.ndarray:
    """Returns the array in the image's shape: red, green and blue get opaque alpha, and one channel loses its axis.

    Raises:
        InvalidArgumentError: it has another shape.
    """
    check_dtype(array.dtype)
    shape = layout.shape(image_format)
    if array.shape == (*layout.grid, 3) and image_format.channels == 4:
        integers = image_format.scalar != "float" or array.dtype == bool or array.dtype.kind == "f"
        opaque = 1 if integers else np.iinfo(array.dtype).max
        array = np.concatenate([array, np.full((*layout.grid, 1), opaque, array.dtype)], axis=-1)
    elif image_format.channels == 1 and array.shape == (*layout.grid, 1):
        array = array.reshape(layout.grid)
    words = image_format.packed and array.dtype == image_format.stored_dtype and array.shape == layout.grid
    if array.shape != shape and not words:
        raise InvalidArgumentError(f"{where}: expected shape {shape} for {image_format}, got {array.shape}")
    return array


def as_dtype(texels: np.ndarray, image_format: ImageFormat, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Converts texels to an array of a dtype: as stored, or the values as floats."""
    if dtype == image_format.dtype:
        return from_texels(texels, image_format)
    check_gives(image_format, dtype, "numpy")
    if image_format.scalar == "float":
        with np.errstate(over="ignore", invalid="ignore"):  # from signalling NaNs
            return values_of(texels, image_format).astype(dtype)
    return from_texels(texels, image_format).astype(dtype)


def check_gives(image_format: ImageFormat, dtype: np.dtype[np.generic], where: str) -> None:
    """Raises InvalidArgumentError if texels cannot become an array of a dtype."""
    kinds = "fV" if image_format.scalar == "float" else "biuf"
    if dtype != image_format.dtype and (dtype.kind not in kinds or dtype.names is not None):
        other = "floats" if image_format.scalar == "float" else "other numbers"
        raise InvalidArgumentError(f"{where}: {image_format} gives {image_format.dtype} or {other}, not {dtype}")


def between(source: ImageFormat, target: ImageFormat) -> np.dtype[np.generic] | None:
    """Returns the dtype for copies between two formats: floats as values; None for integers, which are copied as they
    are.
    """
    return np.dtype(np.float32) if source.scalar == target.scalar == "float" else None
