"""Images as NumPy arrays: axes for height and width, layers and channels, and conversions of shape and dtype.

=========  ==============================  ============================
dim        shape                           and with several channels
=========  ==============================  ============================
1d         (width,)                        (width, channels)
1d_array   (layers, width)                 (layers, width, channels)
2d         (height, width)                 (height, width, channels)
2d_array   (layers, height, width)         …
3d         (depth, height, width)          …
cube       (6, height, width)              +x, -x, +y, -y, +z, -z
cube_array (6 · cubes, height, width)      …
=========  ==============================  ============================
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.image_format import ImageFormat
from ...formats.image_texels import from_texels, values_of
from ...spirv.reflection.reflection_types import ImageType
from ...status import InvalidArgumentError, shown
from ..arrays.spec import check_dtype

AXES: Final = {"1d": 1, "1d_array": 2, "2d": 2, "2d_array": 3, "3d": 3, "cube": 3, "cube_array": 3}
"""The axis count of each dim, without channels."""


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """The dimensions of an image, or of one of its levels.

    Attributes:
        dim: the kind of dimensions, one of ``AXES``.
        grid: the array's shape without the channels.
    """

    dim: str
    grid: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], channels: int | None, dim: str | None, where: str) -> ImageLayout:
        """Returns the layout for an array's shape.

        Args:
            shape: the shape of an array, with or without an axis of channels.
            channels: the format's channel count; ``None`` infers it from the shape.
            dim: the kind of dimensions; ``None`` takes 1d or 2d.
            where: the argument's name in messages.

        Raises:
            InvalidArgumentError: there is no such dim, or the shape does not fit it.
        """
        if dim is None:
            dim = _guess(shape, channels, where)
        elif dim not in AXES:
            raise InvalidArgumentError(f"{where}: dim is one of {', '.join(AXES)}; got {shown(dim)}")
        axes = AXES[dim]
        grid, last = shape[:axes], shape[axes:]
        expected = f"{expected_shape(dim)}{'' if channels in (1, None) else f' or {expected_shape(dim, channels)}'}"
        if len(grid) < axes or len(last) > 1 or (last and not 1 <= last[0] <= 4):
            raise InvalidArgumentError(f"{where}: a {dim} image has shape {expected}, got {shape}")
        if last and channels is not None and last[0] != channels:
            raise InvalidArgumentError(
                f"{where}: expected {channels} channel(s) in the last axis ({expected}), got shape {shape}"
            )
        if 0 in grid:
            raise InvalidArgumentError(f"{where}: an image has no length of 0, got shape {shape}")
        if dim.startswith("cube") and (grid[1] != grid[2] or grid[0] % 6 or (dim == "cube" and grid[0] != 6)):
            raise InvalidArgumentError(
                f"{where}: a {dim} has {'6' if dim == 'cube' else 'a multiple of 6'} square layers, "
                f"{expected_shape(dim)}; got shape {shape}"
            )
        return cls(dim, grid)

    @property
    def layers(self) -> int:
        """The number of array layers; each face of a cube is one."""
        return self.grid[0] if self.has_layers else 1

    @property
    def has_layers(self) -> bool:
        """Whether the first axis is layers."""
        return self.dim.endswith("array") or self.dim == "cube"

    @property
    def extent(self) -> tuple[int, ...]:
        """Width, height and depth in texels, for the dimensions that exist."""
        return tuple(reversed(self.grid[1:] if self.has_layers else self.grid))

    def level(self, level: int) -> ImageLayout:
        """Returns the layout of a level: every length except that of layers is halved."""
        kept = 1 if self.has_layers else 0
        sizes = tuple(max(1, length >> level) for length in self.grid[kept:])
        return ImageLayout(self.dim, (*self.grid[:kept], *sizes))

    def shape(self, image_format: ImageFormat) -> tuple[int, ...]:
        """Returns the shape of the array."""
        return (*self.grid, *image_format.texel_shape())

    def stored_shape(self, image_format: ImageFormat) -> tuple[int, ...]:
        """Returns the shape of stored texels: without channels for packed formats, in blocks for compressed formats."""
        if not image_format.is_compressed:
            return self.grid if image_format.packed else self.shape(image_format)
        width, height = image_format.block
        rows, columns = -(-self.grid[-2] // height), -(-self.grid[-1] // width)
        return (*self.grid[:-2], rows, columns, image_format.block_bytes)


def declared_dim(image: ImageType) -> str:
    """Returns the dim of the images that a shader declares."""
    return ("2d" if image.dim == "rect" else image.dim) + ("_array" if image.arrayed else "")


def expected_shape(dim: str, channels: int = 1) -> str:
    """Returns ``(height, width, 4)``, for messages."""
    names = {"1d": "width", "1d_array": "layers, width", "2d": "height, width", "3d": "depth, height, width"}
    first = {"2d_array": "layers", "cube": "6", "cube_array": "6 * cubes"}
    sizes = names.get(dim) or f"{first[dim]}, height, width"
    return f"({sizes}{f', {channels}' if channels > 1 else ''}{',' if dim == '1d' and channels == 1 else ''})"


def _guess(shape: tuple[int, ...], channels: int | None, where: str) -> str:
    if len(shape) == 1:
        return "1d"
    if len(shape) == 2:
        return "2d"
    if len(shape) == 3 and (1 <= shape[2] <= 4 if channels is None else shape[2] == channels):
        return "2d"
    raise InvalidArgumentError(
        f"{where}: shape {shape} could be several kinds of image; name one, dim= of {', '.join(AXES)}"
    )


def checked_shape(array: np.ndarray, layout: ImageLayout, image_format: ImageFormat, where: str) -> np.ndarray:
    """Returns the array in the image's shape: red, green and blue get opaque alpha, and one channel loses its axis.

    Raises:
        InvalidArgumentError: the array has another shape.
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
        with np.errstate(over="ignore", invalid="ignore"):  # for signalling NaNs
            return values_of(texels, image_format).astype(dtype)
    return from_texels(texels, image_format).astype(dtype)


def check_gives(image_format: ImageFormat, dtype: np.dtype[np.generic], where: str) -> None:
    """Raises InvalidArgumentError if texels cannot become an array of a dtype."""
    kinds = "fV" if image_format.scalar == "float" else "biuf"
    if dtype != image_format.dtype and (dtype.kind not in kinds or dtype.names is not None):
        other = "floats" if image_format.scalar == "float" else "other numbers"
        raise InvalidArgumentError(f"{where}: {image_format} gives {image_format.dtype} or {other}, not {dtype}")


def between(source: ImageFormat, target: ImageFormat) -> np.dtype[np.generic] | None:
    """Returns the dtype for copies between two formats: floats as values; None for integers, which are copied
    unchanged.
    """
    return np.dtype(np.float32) if source.scalar == target.scalar == "float" else None
