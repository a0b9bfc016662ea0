"""Images from arrays, and without contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

import numpy as np
import numpy.typing as npt

from ...formats.image_format import ImageFormat, Kind
from ...formats.image_texels import check_plain, to_texels
from ...spirv.reflection.reflection_types import ImageType
from ...status import InvalidArgumentError, shown
from ..arrays.array import DeviceArray, array_of
from ..arrays.array_device import ArrayDevice
from ..arrays.spec import check_dtype, check_shape
from .image import DeviceImage, new_image
from .layout import ImageLayout, checked_shape, declared_dim
from .texel_array import TexelArray


def image_of(
    device: ArrayDevice,
    a: npt.ArrayLike | DeviceArray | DeviceImage,
    format: str | None,
    *,
    dim: str | None,
    mips: bool | int,
) -> DeviceImage:
    """Creates an image; see ``Device.asimage``."""
    if isinstance(a, DeviceImage):
        if a.device is device and format in (None, a.format.name) and dim in (None, a.dim) and not mips:
            return a
        dim, format = dim or a.dim, format or a.format.name
    if isinstance(a, (DeviceArray, DeviceImage)):
        a = a.numpy()
    try:
        array = np.asarray(a)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgumentError(f"asimage: {type(a).__name__} cannot become an array: {error}") from None
    check_dtype(array.dtype)
    image_format = _format(array, format, dim)
    check_plain(image_format, "asimage")
    alpha = array.shape[-1:] == (3,) and image_format.channels == 4
    words = image_format.packed and array.dtype == image_format.stored_dtype
    layout = ImageLayout.of(array.shape, None if alpha or words else image_format.channels, dim, "asimage")
    array = checked_shape(array, layout, image_format, "asimage")
    image = new_image(device, layout, image_format, levels=_levels(mips))
    try:
        image.fill(array, "asimage")
        return image.generate_mips()
    except BaseException:
        image.close()
        raise


def image_for(
    device: ArrayDevice, array: np.ndarray, image_format: ImageFormat, declared: ImageType, *, levels: int = 1
) -> DeviceImage | TexelArray:
    """Makes the image or the texel buffer that a kernel declares from an array; ``levels`` 0 means all."""
    if declared.dim == "buffer":
        return TexelArray(array_of(device, to_texels(array, image_format)), image_format)
    mips = True if levels == 0 else levels
    return image_of(device, array, image_format.name, dim=declared_dim(declared), mips=mips)


def empty_image(
    device: ArrayDevice,
    shape: int | Sequence[int],
    format: str,
    *,
    dim: str | None,
    mips: bool | int,
    samples: int,
) -> DeviceImage:
    """Creates an image without data; see ``Device.empty_image``."""
    image_format = ImageFormat.parse(format)
    layout = ImageLayout.of(check_shape(shape), image_format.channels, dim, "empty_image")
    return new_image(device, layout, image_format, levels=_levels(mips), samples=samples)


def _format(array: np.ndarray, format: str | None, dim: str | None) -> ImageFormat:
    """Returns the format for a name, or for the dtype and channels."""
    kind = cast("Kind", format) if format in get_args(Kind) else None
    if format is not None and kind is None:
        return ImageFormat.parse(format)
    grid = ImageLayout.of(array.shape, None, dim, "asimage").grid
    channels = array.shape[-1] if array.ndim > len(grid) else 1
    return ImageFormat.of_dtype(array.dtype, 4 if channels == 3 else channels, kind=kind)


def _levels(mips: bool | int) -> int:
    """Returns the HAL's level count: 0 for all."""
    if isinstance(mips, (bool, np.bool_)):
        return 0 if mips else 1
    if not isinstance(mips, (int, np.integer)) or mips < 1:
        raise InvalidArgumentError(f"mips is True, False, or a number of levels from 1; got {shown(mips)}")
    return int(mips)
