"""Pictures in files: PNG to read and write, JPEG to read, as NumPy arrays and as texels of an image format.

Pillow reads and writes them (the extra ``images``). A picture is an array of shape (height, width) or (height, width, 3
or 4), uint8, or uint16 for grey pictures of 16 bits.
"""

from __future__ import annotations

import io
import math
import struct
import warnings
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np

from ..status import InvalidArgumentError, UnavailableError, shorten
from .image_format import ImageFormat
from .image_texels import from_texels, values_of

READABLE: Final = (".png", ".jpg", ".jpeg")
"""Suffixes of files that are read as pictures; only the first is written."""

_PNG_HEADER: Final = struct.Struct(">8s4x4s2I2B")  # signature, "IHDR", width, height, bits a channel, colour type


def is_picture(path: str | Path) -> bool:
    """Whether a file's name has the suffix of a picture."""
    return Path(path).suffix.lower() in READABLE


def decode_picture(data: bytes, where: str) -> np.ndarray:
    """Returns the picture in a file's content; ``where`` is for messages.

    Raises:
        InvalidArgumentError: the content is not a PNG or JPEG, is damaged, or has more bits a channel than Pillow
            keeps.
        UnavailableError: Pillow is not installed.
    """
    pillow = _pillow()
    if len(data) >= _PNG_HEADER.size:
        _, _, _, _, bits, colour = _PNG_HEADER.unpack_from(data)
        if data[1:4] == b"PNG" and bits == 16 and colour:
            raise InvalidArgumentError(
                f"{where}: a PNG of 16 bits a channel in colour, of which Pillow keeps 8; save it with 8 bits, or as "
                ".npy"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
            with pillow.open(io.BytesIO(data), formats=("PNG", "JPEG")) as picture:
                picture.load()
                if picture.mode in ("I", "I;16", "I;16B"):
                    return np.asarray(picture).astype(np.uint16)
                grey = picture.mode in ("1", "L") and "transparency" not in picture.info
                alpha = picture.mode in ("LA", "RGBA", "PA") or "transparency" in picture.info
                return np.array(picture.convert("L" if grey else "RGBA" if alpha else "RGB"))
    except pillow.UnidentifiedImageError:
        kind = "a damaged one" if data[1:4] == b"PNG" or data[:2] == b"\xff\xd8" else "neither"
        description = f"{kind}, of {len(data)} bytes" if data else "an empty file"
        raise InvalidArgumentError(f"{where}: expected a PNG or JPEG picture; this is {description}") from None
    except Exception as error:  # Pillow raises whatever a damaged file makes its decoders run into
        raise InvalidArgumentError(f"{where}: expected a PNG or JPEG picture: {shorten(str(error))}") from None


def encode_picture(picture: np.ndarray) -> bytes:
    """Returns a picture as the content of a PNG file; UnavailableError if Pillow is not installed."""
    target = io.BytesIO()
    _pillow().fromarray(picture).save(target, "PNG")
    return target.getvalue()


def picture_to_array(picture: np.ndarray, image_format: ImageFormat, where: str) -> np.ndarray:
    """Returns a picture in the channels and the dtype that a format takes.

    Grey becomes red, green and blue, and alpha is opaque, where the format has more channels than the picture. The bits
    are kept if the format's channels have the same number; floats are within 0 … 1.

    Raises:
        InvalidArgumentError: the format has fewer channels, or is too narrow for the picture's integers.
    """
    most = np.iinfo(picture.dtype).max
    channels, wanted = picture.shape[2] if picture.ndim == 3 else 1, image_format.channels
    if channels == 1 and wanted > 2:
        picture = np.repeat(picture.reshape(*picture.shape[:2], 1), 3, axis=2)
        channels = 3
    if channels == 3 and wanted == 4:
        picture = np.concatenate([picture, np.full_like(picture[:, :, :1], most)], axis=2)
        channels = 4
    if channels != wanted:
        raise InvalidArgumentError(
            f"{where}: the picture has {channels} channel(s), {image_format} {wanted}; convert the picture, or take a "
            f"format of {channels}"
        )
    if image_format.scalar != "float":
        return picture
    if image_format.kind in ("unorm", "srgb") and picture.dtype == image_format.stored_dtype:
        return picture
    values: np.ndarray = picture.astype(np.float32) / np.float32(most)
    if image_format.kind == "srgb":
        codes: np.ndarray = np.rint(values * 255).astype(np.uint8)
        return codes
    return values


def texels_to_picture(texels: np.ndarray, image_format: ImageFormat, where: str) -> np.ndarray:
    """Returns the picture of an image's texels, layers below each other; the values are those of `array_to_picture`.

    Codes of normalised formats of 8 bits, and of 16 with one channel, are the picture's.
    """
    stored = image_format.kind in ("unorm", "srgb") and (
        image_format.stored_dtype == np.uint8 or (image_format.stored_dtype == np.uint16 and image_format.channels == 1)
    )
    if image_format.scalar != "float" or (stored and not image_format.packed):
        array = from_texels(texels, image_format)
    else:
        array = values_of(texels, image_format)
    kept = 2 if image_format.channels > 1 else 1
    rows = math.prod(array.shape[: array.ndim - kept])
    return array_to_picture(array.reshape(rows, *array.shape[array.ndim - kept :]), where)


def array_to_picture(array: np.ndarray, where: str) -> np.ndarray:
    """Returns the picture of an array of shape (height, width) or (height, width, 1 to 4): of two channels, red and
    green.

    Floats within 0 … 1 become 8 bits, clamped and rounded; integers stay, uint16 without channels as 16 bits.

    Raises:
        InvalidArgumentError: the array has another shape or dtype, or integers that 8 bits do not hold.
    """
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim not in (2, 3) or (array.ndim == 3 and not 2 <= array.shape[2] <= 4) or not array.size:
        raise InvalidArgumentError(
            f"{where}: a picture has shape (height, width) or (height, width, 2 to 4), got {array.shape}; store it as "
            ".npy"
        )
    if array.dtype.kind in "fV":
        values = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0)
        array = np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)
    elif array.dtype == bool:
        array = array.astype(np.uint8) * np.uint8(255)
    elif array.dtype != np.uint8 and not (array.dtype == np.uint16 and array.ndim == 2):
        if array.dtype.kind not in "iu" or int(array.min()) < 0 or int(array.max()) > 255:
            held = f" from {array.min()} to {array.max()}" if array.dtype.kind in "iu" else ""
            raise InvalidArgumentError(
                f"{where}: a PNG holds integers of 0 to 255 or floats of 0 to 1, got {array.dtype}{held}; store it as "
                ".npy"
            )
        array = array.astype(np.uint8)
    if array.ndim == 3 and array.shape[2] == 2:
        array = np.concatenate([array, np.zeros_like(array[:, :, :1])], axis=2)
    return np.ascontiguousarray(array)


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise UnavailableError(
            "pictures are read and written by Pillow, which is not installed: pip install 'pumice[images]'; .npy files "
            "need nothing"
        ) from None
    return Image
