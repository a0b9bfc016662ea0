"""What a call binds: an image by one of its views, a sampler, an array as texels or as it is, or nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from ..arrays.array_device import ArrayDevice

if TYPE_CHECKING:
    from ...hal_vulkan.pipelines.resources import Resource

ABSENT_DESCRIPTOR: Final = bytes(32)


class Markable(Protocol):
    """A value that notes the work which uses it."""

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work."""


class Absent:
    """In an array of bindings, a place without one, which the kernel must not use."""

    __slots__ = ()

    dtype = np.dtype(np.void)
    shape: tuple[int, ...] = ()
    nbytes = 0

    def mark(self, payload: int, *, written: bool) -> None:
        """Does nothing."""


ABSENT: Final = Absent()


class Bound:
    """A value as a pipeline binds it.

    Attributes:
        device: where it is.
        buffer: what the HAL binds; ``None`` for an absent one.
        shape: texels by axis, from which workgroup counts follow.
        nbytes: of the texels or elements.
    """

    __slots__ = ("_value", "buffer", "device", "nbytes", "shape")

    def __init__(
        self, device: ArrayDevice, value: Markable, buffer: Resource | None, shape: tuple[int, ...], nbytes: int
    ) -> None:
        self.device = device
        self._value = value
        self.buffer = buffer
        self.shape = shape
        self.nbytes = nbytes

    @property
    def size(self) -> int:
        """Number of texels."""
        return math.prod(self.shape)

    @property
    def descriptor(self) -> bytes:
        """What update templates read."""
        return ABSENT_DESCRIPTOR if self.buffer is None else self.buffer.descriptor

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work."""
        self._value.mark(payload, written=written)
