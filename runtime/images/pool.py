"""The pool of a device's images for host arrays, and its default samplers, kept between kernel calls.

Making an image takes longer than copying a small array, and a kernel called in a loop needs the same images again. So a
call takes an image that an earlier call gave back.

Thread rule: any thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ...base.closeable import Closeable
from ...formats.image_format import ImageFormat
from ..arrays.array_device import ArrayDevice
from .image import DeviceImage, new_image
from .layout import ImageLayout

if TYPE_CHECKING:
    from ...hal_vulkan import Sampler as HalSampler
    from ...hal_vulkan.images.sampler import Compare, Filter

_MAX_KEPT: Final = 16
_MAX_KEPT_BYTES: Final = 16 << 20


class ImagePool(Closeable):
    """At most 16 images, of 16 MiB together, and the samplers of images passed without one."""

    def __init__(self, device: ArrayDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._images: list[DeviceImage] = []  # in order of return
        self._samplers: dict[tuple[str, str | None], HalSampler] = {}
        device.hal.caches.add(self)

    @classmethod
    def of(cls, device: ArrayDevice) -> ImagePool:
        """Returns the device's pool."""
        pool = device.kept.get(cls)
        if pool is None:
            pool = device.kept.setdefault(cls, cls(device))
        assert isinstance(pool, ImagePool)
        return pool

    def take(self, layout: ImageLayout, image_format: ImageFormat) -> DeviceImage:
        """Returns an image exclusively for the caller until ``give_back`` or ``close``."""
        with self._lock:
            for index, image in enumerate(self._images):
                if image.layout == layout and image.format == image_format:
                    return self._images.pop(index)
        return new_image(self._device, layout, image_format)

    def give_back(self, image: DeviceImage) -> None:
        """Keeps an image. Work that uses it may still be in flight; later work runs after it."""
        image.sampler = None
        image.resources.clear()
        surplus = []
        with self._lock:
            if not self._device.is_closed and not image.is_closed:
                self._images.append(image)
                while len(self._images) > _MAX_KEPT or sum(kept.nbytes for kept in self._images) > _MAX_KEPT_BYTES:
                    surplus.append(self._images.pop(0))
        for kept in surplus:
            kept.close()

    def sampler(self, filter: Filter, compare: Compare | None) -> HalSampler:
        """Returns the sampler for images without one, always the same."""
        with self._lock:
            sampler = self._samplers.get((filter, compare))
            if sampler is None or sampler.is_closed:
                sampler = self._device.vulkan.create_sampler(filter=filter, mip_filter=filter, compare=compare)
                self._samplers[filter, compare] = sampler
            return sampler

    def trim(self) -> None:
        """Frees the kept images and samplers."""
        with self._lock:
            images, self._images = self._images, []
            samplers, self._samplers = list(self._samplers.values()), {}
        for kept in (*images, *samplers):
            kept.close()

    def close(self) -> None:
        """Frees all kept objects; idempotent."""
        self.trim()


class Lease(Closeable):
    """A pooled image while a call uses it; closing returns it."""

    def __init__(self, pool: ImagePool, image: DeviceImage) -> None:
        self._pool = pool
        self._image: DeviceImage | None = image

    def close(self) -> None:
        """Gives the image back; idempotent."""
        image, self._image = self._image, None
        if image is not None:
            self._pool.give_back(image)
