"""Texels of image formats from NumPy arrays, and back.

An array's last axis is the channels, in the order red, green, blue, alpha whatever the order in memory; an image of one
channel has no such axis.

The conversions are those of the Vulkan specification ("Fixed-Point Data Conversions", "Floating-Point Format
Conversions", VK_FORMAT_E5B9G9R9_UFLOAT_PACK32) and, for sRGB, of the Khronos Data Format Specification 1.3.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..status import InvalidArgumentError
from .image_format import ImageFormat

Array: TypeAlias = np.ndarray
Floats: TypeAlias = npt.NDArray[np.float64]
Words: TypeAlias = npt.NDArray[np.uint32]


def to_texels(array: Array, image_format: ImageFormat, where: str = "image") -> Array:
    """Returns the texels of an array, as they lie in memory.

    Args:
        array: an array of shape (…, channels), or (…) for one channel. Its dtype is ``image_format.stored_dtype``,
            whose bits are kept (a packed format takes its words without an axis of channels); or floats, which a
            normalised format takes clamped to its range and rounded, and sRGB as linear light; or, for ``uint`` and
            ``sint``, any integers in range.
        image_format: the format.
        where: the array's name in messages.

    Returns:
        A C-contiguous array of ``stored_dtype``.

    Raises:
        InvalidArgumentError: the format cannot take the dtype, or integers are out of its range.
    """
    check_plain(image_format, where)
    if array.dtype == image_format.stored_dtype and not (image_format.packed and _has_channels(array, image_format)):
        in_memory = array if image_format.packed else _reordered(array, image_format)
        return np.ascontiguousarray(in_memory).reshape(array.shape)
    kind = array.dtype.kind
    if kind == "V" and not array.dtype.names:  # ml_dtypes' floats
        kind = "f" if np.can_cast(array.dtype, np.float64) else kind
    integers = image_format.scalar != "float"
    accepted = "bui" if integers else "buif" if image_format.kind in ("uscaled", "sscaled") else "bf"
    if kind not in accepted:
        hint = (
            "convert it with .astype()"
            if integers
            else f"give {image_format.stored_dtype} for the bits themselves, or floats"
            + (" such as a / np.float32(255)" if array.dtype == np.uint8 else " for the values")
        )
        raise InvalidArgumentError(f"{where}: {image_format} takes no {array.dtype}; {hint}")
    if integers:
        codes = [_checked(array, channel, bits, image_format, where) for channel, bits in image_format.fields]
    elif image_format.name == "rgb9e5float":
        return _shared_exponent(array.astype(np.float64))
    else:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = array.astype(np.float64)
        codes = [
            _code(_channel(values, name, image_format), name, bits, image_format) for name, bits in image_format.fields
        ]
    if not image_format.packed:
        return np.stack(codes, axis=-1) if image_format.channels > 1 else codes[0].reshape(array.shape)
    word = np.zeros(codes[0].shape, np.uint32)
    shift = 0
    for code, (_, bits) in zip(codes, image_format.fields, strict=True):
        word |= (code.astype(np.int64) & ((1 << bits) - 1)).astype(np.uint32) << np.uint32(shift)
        shift += bits
    return word.astype(image_format.stored_dtype)


def check_plain(image_format: ImageFormat, where: str) -> None:
    """Raises for formats whose texels no array holds."""
    if not image_format.is_plain:
        if image_format.is_compressed:
            contents = (
                f"compressed blocks; copy_from() of an empty_image() takes blocks of {image_format.block_bytes} bytes"
            )
        else:
            contents = "depth beside other bits; copy the bytes from a buffer (CommandBuffer.copy_buffer_to_image)"
        raise InvalidArgumentError(f"{where}: no array holds texels of {image_format}, which are {contents}")


def from_texels(texels: Array, image_format: ImageFormat) -> Array:
    """Returns the array of an image: the stored channels, or for a packed format the values.

    Args:
        texels: the texels, of ``stored_dtype`` and shape (…, channels), or (…) for one channel and for packed formats.
        image_format: the format.

    Returns:
        A C-contiguous array of ``image_format.dtype``.
    """
    if not image_format.packed:
        return np.ascontiguousarray(_reordered(texels, image_format)).reshape(texels.shape)
    if image_format.scalar != "float":
        return _in_order(_unpacked(texels, image_format), image_format).astype(image_format.dtype)
    return values_of(texels, image_format).astype(np.float32)


def values_of(texels: Array, image_format: ImageFormat) -> Floats:
    """Returns the values that a shader reads, as float64: normalised formats within 0 … 1 or -1 … 1, sRGB as linear
    light.
    """
    if image_format.name == "rgb9e5float":
        word = texels.astype(np.int64)
        scale = np.ldexp(1.0, (word >> 27) - 24)
        return np.stack([((word >> shift) & 511) * scale for shift in (0, 9, 18)], axis=-1)
    if image_format.packed:
        codes = _unpacked(texels, image_format)
    elif image_format.channels > 1:
        codes = [texels[..., index] for index in range(image_format.channels)]
    else:
        codes = [texels]
    values = [_value(code, *field, image_format) for code, field in zip(codes, image_format.fields, strict=True)]
    return _in_order(values, image_format) if image_format.channels > 1 else values[0]


def linear_to_srgb(values: Floats) -> Floats:
    """Returns the sRGB encoding of linear light, 0 … 1."""
    with np.errstate(invalid="ignore"):
        return np.where(values <= 0.0031308, 12.92 * values, 1.055 * np.power(np.abs(values), 1 / 2.4) - 0.055)


def srgb_to_linear(values: Floats) -> Floats:
    """Returns the linear light of values as sRGB encodes it, 0 … 1."""
    return np.where(values <= 0.04045, values / 12.92, np.power((values + 0.055) / 1.055, 2.4))


# -- channels ----------------------------------------------------------------------------------------


def _fields(image_format: ImageFormat) -> list[tuple[str, int]]:
    return [field for field in image_format.fields if field[0] != "e"]


def _order(image_format: ImageFormat) -> list[int]:
    """Returns each channel's position in memory, in the array's channel order."""
    names = [name for name, _ in _fields(image_format)]
    return [names.index(name) for name in sorted(names, key="rgbads".index)]


def _has_channels(array: Array, image_format: ImageFormat) -> bool:
    return image_format.channels > 1 and array.ndim > 0 and array.shape[-1] == image_format.channels


def _reordered(array: Array, image_format: ImageFormat) -> Array:
    """Converts between the channel orders of an array and of memory, which differ at most by a swap of red and blue."""
    order = _order(image_format)
    return array if order == sorted(order) else array[..., order]


def _channel(array: Array, name: str, image_format: ImageFormat) -> Array:
    if image_format.channels == 1:
        return array
    names = sorted((name for name, _ in _fields(image_format)), key="rgbad".index)
    return array[..., names.index(name)]


def _in_order(memory: list[Array], image_format: ImageFormat) -> Array:
    return np.stack([memory[index] for index in _order(image_format)], axis=-1)


def _unpacked(texels: Array, image_format: ImageFormat) -> list[Array]:
    """Returns the fields of words, in the order of memory; signed fields with their sign."""
    word = texels.astype(np.int64)
    signed = image_format.kind in ("snorm", "sint", "sscaled")
    fields, shift = [], 0
    for _, bits in image_format.fields:
        code = (word >> shift) & ((1 << bits) - 1)
        fields.append(code - ((code >> (bits - 1)) << bits) if signed else code)
        shift += bits
    return fields


# -- numbers -----------------------------------------------------------------------------------------


def _checked(array: Array, name: str, bits: int, image_format: ImageFormat, where: str) -> Array:
    """Returns integers, after a check that they fit a channel."""
    channel = _channel(array, name, image_format)
    signed = image_format.kind == "sint"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if channel.size and (int(channel.min()) < low or int(channel.max()) > high):
        raise InvalidArgumentError(
            f"{where}: channel {name} of {image_format} holds {low} to {high}, got {channel.min()} to {channel.max()}"
        )
    return channel.astype(image_format.stored_dtype if not image_format.packed else np.int64)


def _code(values: Floats, name: str, bits: int, image_format: ImageFormat) -> Array:
    """Returns the bits of a channel, for packed formats as a wider integer."""
    kind = image_format.kind
    dtype = np.dtype(np.int64) if image_format.packed else image_format.stored_dtype
    if kind == "float":
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(dtype)
    if kind == "ufloat":
        return _small_float(values, bits - 5)
    values = np.nan_to_num(values, nan=0.0, posinf=np.finfo(np.float64).max, neginf=np.finfo(np.float64).min)
    if kind in ("uscaled", "sscaled"):
        low, high = (0, (1 << bits) - 1) if kind == "uscaled" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        return np.clip(np.trunc(values), low, high).astype(dtype)
    if kind == "snorm":
        return np.rint(np.clip(values, -1, 1) * ((1 << (bits - 1)) - 1)).astype(dtype)
    values = np.clip(values, 0, 1)
    if kind == "srgb" and name != "a":
        values = linear_to_srgb(values)
    return np.rint(values * ((1 << bits) - 1)).astype(dtype)


def _value(code: Array, name: str, bits: int, image_format: ImageFormat) -> Floats:
    kind = image_format.kind
    if kind == "ufloat":
        return _from_small_float(code.astype(np.int64), bits - 5)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = code.astype(np.float64)
    if kind == "snorm":
        return np.maximum(values / ((1 << (bits - 1)) - 1), -1.0)
    if kind in ("unorm", "srgb"):
        values = values / ((1 << bits) - 1)
        return srgb_to_linear(values) if kind == "srgb" and name != "a" else values
    return values


def _small_float(values: Floats, mantissa: int) -> Array:
    """Returns the bits of floats without a sign, with 5 bits of exponent; numbers too large become the largest."""
    largest = (2 - 0.5**mantissa) * 2.0**15
    finite = np.clip(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), 0, largest)
    exponent = np.where(finite > 0, np.maximum(np.frexp(finite)[1] - 1, -14), -14)
    # Below the least normal number the exponent's field is 0; a mantissa that rounds up carries into the exponent.
    scaled = np.rint(np.ldexp(finite, mantissa - exponent)).astype(np.int64)
    bits = np.minimum(((exponent.astype(np.int64) + 14) << mantissa) + scaled, (31 << mantissa) - 1)
    bits = np.where(values == np.inf, 31 << mantissa, bits)
    return np.where(np.isnan(values), (31 << mantissa) + 1, bits)


def _from_small_float(bits: npt.NDArray[np.int64], mantissa: int) -> Floats:
    exponent, fraction = bits >> mantissa, bits & ((1 << mantissa) - 1)
    normal = np.ldexp((fraction + (1 << mantissa)).astype(np.float64), exponent - 15 - mantissa)
    values = np.where(exponent == 0, np.ldexp(fraction.astype(np.float64), -14 - mantissa), normal)
    return np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), values)


def _shared_exponent(values: Floats) -> Words:
    """Returns words of rgb9e5: three mantissas of 9 bits and one exponent of 5."""
    clamped = np.clip(np.nan_to_num(values, nan=0.0, posinf=65408.0, neginf=0.0), 0, 65408.0)
    largest = clamped.max(axis=-1)
    exponent = np.where(largest > 0, np.maximum(np.frexp(largest)[1] - 1, -16) + 16, 0)
    exponent += np.floor(np.ldexp(largest, 24 - exponent) + 0.5) == 512
    mantissas = np.floor(np.ldexp(clamped, (24 - exponent)[..., None]) + 0.5).astype(np.uint32)
    word: Words = mantissas[..., 0] | mantissas[..., 1] << np.uint32(9) | mantissas[..., 2] << np.uint32(18)
    word |= exponent.astype(np.uint32) << np.uint32(27)
    return word
