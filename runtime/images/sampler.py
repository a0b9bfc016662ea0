"""Samplers: filtering between texels, and addressing beyond an image's edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...base.closeable import Closeable
from ...status import ClosedError
from ..arrays.array_device import ArrayDevice

if TYPE_CHECKING:
    from ...hal_vulkan import Sampler as HalSampler


class Sampler(Closeable):
    """A sampler; made by ``Device.sampler``, and by kernels for images passed without one.

    Attributes:
        device: the sampler's device.
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
        """Whether it or its device was closed."""
        return self.hal.is_closed

    def check_open(self) -> None:
        """Raises ClosedError if it was closed."""
        if self.is_closed:
            raise ClosedError("this sampler was closed")

    def mark(self, payload: int, *, written: bool) -> None:
        """Does nothing, as the HAL keeps samplers in use. For the runtime."""

    def close(self) -> None:
        """Frees it, once work in flight is done; idempotent."""
        self.hal.close()

    def __del__(self) -> None:
        # For convenience only. The garbage collector may run under any lock, so the device's next call closes it.
        if hasattr(self, "hal") and not self.hal.is_closed:
            self.device.hal.dropped.append(self.hal)

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}pumice.Sampler of {self.device.name!r}>"
