"""Images: what a device's formats can do, images and their views, samplers, and buffers of texels.

Read: format_features, sampler, image_view, image, region, texel_buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .format_features import ImageUsage, format_features
    from .image import Image
    from .image_view import CombinedImageSampler, ImageView
    from .sampler import Sampler
    from .texel_buffer import TexelBuffer

__all__ = [
    "CombinedImageSampler",
    "Image",
    "ImageUsage",
    "ImageView",
    "Sampler",
    "TexelBuffer",
    "format_features",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".format_features": ("ImageUsage", "format_features"),
            ".image": ("Image",),
            ".image_view": ("CombinedImageSampler", "ImageView"),
            ".sampler": ("Sampler",),
            ".texel_buffer": ("TexelBuffer",),
        },
    )
