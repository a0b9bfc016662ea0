"""Images: what a device's formats can do, images and their views, samplers, and buffers of texels.

Imports: `vulkan`, `instance`, `memory`, `hal`, `formats` and the ground files at the root.

Read: `format_features`, `sampler`, `image_view`, `image`, `region`, `texel_buffer`.
"""

from __future__ import annotations

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
