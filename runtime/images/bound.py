"""The resources other than arrays that a call binds: a view of an image, a sampler, an array as texels, or nothing.

And the arrays that it converts to images.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...formats.image_format import ImageFormat
from ..arrays.spec import ArraySpec
from .layout import ImageLayout
from .sampler import Sampler

if TYPE_CHECKING:
    from ...hal_vulkan.pipelines.resources import Resource


ABSENT_DESCRIPTOR: Final = bytes(32)


class Absent:
    """An element that an array of bindings lacks; the kernel must not use it."""

    __slots__ = ()

    dtype: np.dtype[np.void] = np.dtype(np.void)
    shape: tuple[int, ...] = ()
    nbytes = 0

    def mark(self, payload: int, *, written: bool) -> None:
        """Does nothing."""


ABSENT: Final = Absent()


class Bound(NamedTuple):
    """A value in the form in which a pipeline binds it.

    Attributes:
        buffer: the HAL's resource; ``None`` if absent.
        shape: the texels per axis, which determine workgroup counts.
        nbytes: the bytes of the texels or elements.
    """

    buffer: Resource | None
    shape: tuple[int, ...]
    nbytes: int

    @property
    def size(self) -> int:
        """Number of texels."""
        return math.prod(self.shape)

    @property
    def descriptor(self) -> bytes:
        """The bytes that update templates read."""
        return ABSENT_DESCRIPTOR if self.buffer is None else self.buffer.descriptor


class HostImage:
    """A NumPy array, or the description of a result, that a call converts to an image."""

    __slots__ = ("array", "dtype", "format", "layout", "nbytes", "sampler", "shape")

    def __init__(
        self,
        value: np.ndarray | ArraySpec,
        image_format: ImageFormat,
        layout: ImageLayout,
        sampler: Sampler | None,
    ) -> None:
        self.array: np.ndarray | None = value if isinstance(value, np.ndarray) else None
        self.dtype: np.dtype[np.generic] = value.dtype
        self.shape: tuple[int, ...] = value.shape
        self.nbytes: int = value.nbytes
        self.format: ImageFormat = image_format
        self.layout: ImageLayout = layout
        self.sampler: Sampler | None = sampler
