"""Arrays of the host that a call makes images of."""

from __future__ import annotations

import numpy as np

from ...formats.image_format import ImageFormat
from ..arrays.spec import ArraySpec
from .layout import ImageLayout
from .sampler import Sampler


class HostImage:
    """A NumPy array, or the description of a result, that a call makes an image of."""

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
