"""Images as text, for the arguments of command lines and studies::

    256x256xrgba8unorm=@cat.png      height x width, a format, and a picture; JPEG is read too
    @cat.png                         the picture's size, and the format that the kernel declares
    256x256xrgba32float=@data.npy    an array of shape (256, 256, 4)
    64x64x64xr16float=@volume.bin    depth x height x width; the texels' bytes
    6x256x256xrgba8unorm=@faces.png  layers, or a cube's faces, below each other in one picture
    2x2xr32float=1,2,3,4             values of the format's dtype; one value fills the image
    256x256xrgba8unorm               zeros, or an output
    256x256xrgba8unorm:mips=@cat.png with all smaller levels; :mips3 with three levels in all

The shape is that of the array without its channels; the kernel's declaration determines the meaning of its axes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ...base.files import reading_errors
from ...formats.element_type import ElementType, format_shape, format_shape_and_type
from ...formats.image_format import ImageFormat
from ...formats.image_texels import from_texels
from ...formats.picture import decode_picture, is_picture, picture_to_array
from ...status import InvalidArgumentError, shown
from .files import ValueFiles
from .parse import parse_buffer_spec

_HEAD: Final = re.compile(r"((?:[0-9]{1,9}x)*)([A-Za-z][A-Za-z0-9_-]*)(?::mips([0-9]{0,2}))?", re.ASCII)


class ImageSpec(NamedTuple):
    """The contents of an image's text.

    Attributes:
        text: the specification as written.
        grid: the array's shape without the channels; ``None`` means the picture's.
        format: the format; ``None`` means the kernel's.
        levels: the number of levels: 1, another count, or 0 for all.
        data: the text's array or picture, if any.
        is_picture: whether ``data`` is a picture, to be converted to the format.
        sampler: the keywords of its sampler; ``None`` means the default.
    """

    text: str
    grid: tuple[int, ...] | None
    format: ImageFormat | None
    levels: int
    data: np.ndarray | None
    is_picture: bool
    sampler: Mapping[str, Any] | None = None

    def resolved(
        self, declared: str, scalar: str, where: str
    ) -> tuple[ImageFormat, tuple[int, ...], np.ndarray | None]:
        """Returns format, shape without channels, and array, for a kernel's declared format (or ``""``) and scalar
        type.

        Raises:
            InvalidArgumentError: the picture has another size, or channels that the format lacks.
        """
        image_format = self.format
        if image_format is None:
            name = {"float": "rgba8unorm", "int": "rgba32sint"}.get(scalar, "rgba8uint")
            image_format = ImageFormat.parse(declared or name)
        data, grid = self.data, self.grid
        if data is None:
            assert grid is not None
            return image_format, grid, None
        if not self.is_picture:
            return image_format, grid or data.shape, data
        array = picture_to_array(data, image_format, where)
        grid = grid or data.shape[:2]
        if len(grid) < 2 or grid[-1] != data.shape[1] or math.prod(grid[:-1]) != data.shape[0]:
            raise InvalidArgumentError(
                f"{where}: the picture has {format_shape(data.shape[:2])} texels (height x width), expected "
                f"{format_shape(grid)}" + (", one below the other" if len(grid) > 2 else "")
            )
        return image_format, grid, array.reshape(*grid, *image_format.texel_shape())


def is_image_text(text: str) -> bool:
    """Whether a value's text is an image's: it contains an image format, or is only a picture."""
    body = text.strip()
    match = _HEAD.fullmatch(body.partition("=")[0].strip())
    if body.startswith("@"):
        return is_picture(body[1:])
    return match is not None and ImageFormat.is_name(match[2]) and not _is_element_type(match[2])


def parse_image_spec(text: str, files: ValueFiles) -> ImageSpec:
    """Parses an image's text; see the module's docstring. ``files`` are shared with other texts.

    Raises:
        InvalidArgumentError: the text is malformed, or the file does not contain this image.
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be read, or Pillow is not installed.
    """
    body = text.strip()
    if body.startswith("@"):
        return ImageSpec(body, None, None, 1, _picture(body[1:]), is_picture=True)
    head, _, value = body.partition("=")
    match = _HEAD.fullmatch(head.strip())
    if match is None or not match[1]:
        raise InvalidArgumentError(
            f"expected an image such as 256x256xrgba8unorm=@cat.png, height x width x format; got {shown(head)}"
        )
    grid = tuple(int(size) for size in match[1].split("x")[:-1])
    image_format = ImageFormat.parse(match[2])
    levels = 1 if match[3] is None else int(match[3] or 0)
    if match[3] and not levels:
        raise InvalidArgumentError(f"{shown(head)}: an image has at least one level; :mips makes all of them")
    shape = (*grid, *image_format.texel_shape())
    value = value.strip()
    if not value:
        return ImageSpec(body, grid, image_format, levels, None, is_picture=False)
    if value.startswith("@") and is_picture(value[1:]):
        return ImageSpec(body, grid, image_format, levels, _picture(value[1:]), is_picture=True)
    if value.startswith(("@", "+")) and value.endswith(".npy"):
        data = files.array(value[1:], restart=value[0] == "@")
        if data.shape not in (shape, grid) and data.shape != (*grid, 3):
            raise InvalidArgumentError(f"expected shape {shape} for {shown(head)}, {shown(value[1:])} has {data.shape}")
    elif value.startswith(("@", "+")):
        stored = shape if not image_format.packed else grid
        words = ElementType.from_dtype(image_format.stored_dtype)
        data = from_texels(files.raw(value[1:], stored, words, restart=value[0] == "@"), image_format)
    else:
        parsed = parse_buffer_spec(f"{format_shape_and_type(shape, element_type_of(image_format.dtype))}={value}")
        assert parsed.data is not None
        data = parsed.data
    return ImageSpec(body, grid, image_format, levels, data, is_picture=False)


def element_type_of(dtype: np.dtype[np.generic]) -> ElementType:
    """Returns the element type of values in text; unsigned integers are distinguished."""
    if dtype.kind == "u":
        return ElementType[f"UINT_{8 * dtype.itemsize}"]
    return ElementType.from_dtype(dtype)


def _is_element_type(name: str) -> bool:
    try:
        ElementType.parse(name)
    except InvalidArgumentError:
        return False
    return True


def _picture(path: str) -> np.ndarray:
    with reading_errors(Path(path)):
        data = Path(path).read_bytes()
    return decode_picture(data, path)
