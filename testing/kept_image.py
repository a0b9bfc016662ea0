"""Images among the arguments of a noted call: copies of their texels, and how ``pumice run`` writes them."""

from __future__ import annotations

import numpy as np

from ..base.lazy_dataclass import dataclass
from ..formats.element_type import format_shape
from ..runtime import DeviceArray, DeviceImage, Sampler
from ..runtime.arrays.array import new_array
from ..runtime.images.bound import HostImage
from ..runtime.values.sampler_text import format_sampler
from ..status import UnimplementedError


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An image as it was at a call.

    Attributes:
        head: shape and format, ``64x64xrgba8unorm``.
        sampler: as ``--sampler`` takes it, ``""`` for none.
        array: of the host, or ``None``.
        texels: the bytes of an image on a device, as an array there, or ``None``.
        nbytes: what is kept.
    """

    head: str
    sampler: str
    array: np.ndarray | None = None
    texels: DeviceArray | None = None
    nbytes: int = 0


def keep_image(image: HostImage | DeviceImage, *, reads: bool) -> KeptImage:
    """Keeps the texels that a kernel reads; copies those of a device image in the order of its work, without waiting.

    Raises:
        UnimplementedError: the image has no textual form: it has levels or samples, or is compressed.
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
    texels = new_array(image.device, (image.nbytes,), np.dtype(np.uint8))
    texels.mark(image.read_to(texels.buffer), written=True)
    return KeptImage(head, sampler, texels=texels, nbytes=image.nbytes)


def sampler_text(sampler: Sampler) -> str:
    """Returns a sampler's settings in the form of ``--sampler``."""
    return format_sampler(sampler.hal.settings)
