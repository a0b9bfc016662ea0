"""Samplers: filtering between texels, and addressing past an image's edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...base.closeable import Closeable
from ...status import ClosedError
from ..arrays.array_device import ArrayDevice

if TYPE_CHECKING:
    from ...hal_vulkan import Sampler as HalSampler


class Sampler(Closeable):
    """A sampler; made by ``Device.sampler``, and by kernels for images that are given without one.

    Attributes:
        device: the device it belongs to.
        hal: the HAL's sampler.
    """

    __slots__ = ("device", "hal")

    dtype: np.dtype[np.void] = np.dtype(np.void)
    shape: tuple[int, ...] = ()
    nbytes = 0

    def __init__(self, device: ArrayDevice, hal: HalSampler) -> None:
        self.device: ArrayDevice = device
        self.hal: HalSampler = hal

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, by itself or with its device."""
        return self.hal.is_closed

    def check_open(self) -> None:
        """Raises ClosedError if it was closed."""
        if self.is_closed:
            raise ClosedError("this sampler was closed")

    def mark(self, payload: int, *, written: bool) -> None:
        """Does nothing: the HAL keeps samplers that are in use. For the runtime."""

    def close(self) -> None:
        """Frees it, once work under way has finished; idempotent."""
        self.hal.close()

    def __del__(self) -> None:
        # For convenience only. The garbage collector may run under any lock, so the device's next call closes it.
        if hasattr(self, "hal") and not self.hal.is_closed:
            self.device.hal.dropped.append(self.hal)

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}pumice.Sampler of {self.device.name!r}>"
