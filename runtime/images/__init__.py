"""Images on a device, samplers, and arrays as texel buffers.

Read: layout, sampler, bound, image, pool, texel_array, making.
"""

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .image import DeviceImage
    from .sampler import Sampler
    from .texel_array import TexelArray

__all__ = ["DeviceImage", "Sampler", "TexelArray"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".image": ("DeviceImage",),
            ".sampler": ("Sampler",),
            ".texel_array": ("TexelArray",),
        },
    )
