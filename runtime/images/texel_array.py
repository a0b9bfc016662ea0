"""Arrays that kernels read and write as texels: GLSL's ``samplerBuffer`` and ``imageBuffer``."""

from __future__ import annotations

import numpy as np

from ...base.closeable import Closeable
from ...formats.image_format import ImageFormat
from ...status import InvalidArgumentError
from ..arrays.array import DeviceArray


class TexelArray(Closeable):
    """A device array with a texel format, in the array's own memory. Made by ``Device.texel_buffer``.

    Attributes:
        array: the array with the texels' bytes.
        format: the format of a texel.
    """

    __slots__ = ("array", "format")

    def __init__(self, array: DeviceArray, image_format: ImageFormat) -> None:
        is_bits = array.dtype.kind == "u" and array.dtype.itemsize in (1, image_format.texel_bytes)
        if array.dtype != image_format.stored_dtype and not is_bits:
            raise InvalidArgumentError(
                f"texel_buffer: {image_format} is stored as {image_format.stored_dtype}, got {array.dtype}; convert "
                "with .astype(), or give the bits as they are by .view(np.uint8)"
            )
        if not array.nbytes or array.nbytes % image_format.texel_bytes:
            raise InvalidArgumentError(
                f"texel_buffer: {array.nbytes} bytes are no whole texels of {image_format}, which have "
                f"{image_format.texel_bytes} each"
            )
        self.array: DeviceArray = array
        self.format: ImageFormat = image_format

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.array.dtype

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Returns a copy of the array; see ``DeviceArray.numpy``."""
        return self.array.numpy(out)

    @property
    def ready(self) -> int:
        """The payload at which the last write is done. For the runtime."""
        return self.array.ready

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work. For the runtime."""
        self.array.mark(payload, written=written)

    @property
    def is_closed(self) -> bool:
        """Whether the array was closed."""
        return self.array.is_closed

    def close(self) -> None:
        """Closes the array; idempotent."""
        self.array.close()

    def __repr__(self) -> str:
        return f"TexelArray(format={self.format}, array={self.array!r})"


def texel_format(dtype: np.dtype[np.generic], shape: tuple[int, ...], scalar: str | None) -> ImageFormat:
    """Returns the format for an array's texels; a last axis of length 2 to 4 is the channels.

    Raises:
        InvalidArgumentError: no format holds such texels.
    """
    channels = shape[-1] if len(shape) > 1 and 2 <= shape[-1] <= 4 else 1
    return ImageFormat.of_dtype(dtype, channels, scalar)
