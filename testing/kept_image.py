"""Images among the arguments of a noted call: copies of their texels, and how ``pumice run`` writes them."""

from __future__ import annotations

import numpy as np

from ..formats.element_type import format_shape
from ..hal.buffer import Buffer
from ..records import dataclass
from ..runtime import DeviceImage, Sampler
from ..runtime.arrays.array_device import READBACK, ArrayDevice
from ..runtime.arrays.spec import raw_bytes
from ..runtime.images.host_image import HostImage
from ..runtime.values.sampler_text import format_sampler
from ..status import UnimplementedError


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An image as it was at a call.

    Attributes:
        head: shape and format, ``64x64xrgba8unorm``.
        sampler: as ``--sampler`` takes it, ``""`` for none.
        array: of the host, or ``None``.
        staged: the texels of an image on a device, and that device, or ``None``.
        nbytes: what is kept.
    """

    head: str
    sampler: str
    array: np.ndarray | None = None
    staged: tuple[ArrayDevice, Buffer] | None = None
    nbytes: int = 0

    def texels(self) -> bytes | None:
        """The bytes of an image on a device, which are waited for."""
        if self.staged is None:
            return None
        device, buffer = self.staged
        device.reach(device.submitted)
        out = np.empty(self.nbytes, np.uint8)
        buffer.read_into(raw_bytes(out))
        return out.tobytes()


def keep_image(image: HostImage | DeviceImage, *, reads: bool) -> KeptImage:
    """Keeps what a kernel reads of an image; of one on a device in the order of its work, without waiting.

    Raises:
        UnimplementedError: an image that no text describes: with levels, samples or compressed.
    """
    head = f"{format_shape(image.layout.grid)}x{image.format.name}"
    sampler = "" if image.sampler is None else sampler_text(image.sampler)
    if isinstance(image, HostImage):
        array = image.array.copy() if reads and image.array is not None else None
        return KeptImage(head, sampler, array, nbytes=0 if array is None else array.nbytes)
    if image.levels > 1 or image.hal.samples > 1 or image.format.is_compressed:
        raise UnimplementedError("an image with levels or samples, or of a compressed format, is not kept")
    if not reads:
        return KeptImage(head, sampler)
    buffer = image.device.hal.create_buffer(image.nbytes, memory_type=READBACK)
    image.read_to(buffer)
    return KeptImage(head, sampler, staged=(image.device, buffer), nbytes=image.nbytes)


def sampler_text(sampler: Sampler) -> str:
    """As ``--sampler`` takes it."""
    return format_sampler(sampler.hal.settings)
