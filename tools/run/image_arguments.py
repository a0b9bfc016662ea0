"""Images and samplers in the options of ``pumice run``, and pictures as result files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, format_shape
from ...formats.image_format import ImageFormat
from ...formats.image_texels import from_texels, to_texels
from ...formats.picture import array_to_picture, texels_to_picture
from ...hal_vulkan import Binding
from ...runtime import Device, DeviceImage, Sampler, TexelArray
from ...runtime.images.layout import ImageLayout, checked_shape
from ...runtime.images.making import image_for
from ...runtime.values.format import format_value
from ...runtime.values.image_text import ImageSpec, element_type_of
from ...runtime.values.sampler_text import parse_sampler
from ...status import shorten
from ..errors import usage, usage_error
from .block_arguments import BlockArgument
from .keys import Array, BindingKey, BufferArgument, split_key

SAMPLER_EXAMPLE: Final = "1=filter=nearest,address=repeat"


@dataclass(frozen=True, slots=True)
class ImageArgument(BufferArgument):
    """A binding's image; once ``resolved``, its shape, element type and data are those of its array."""

    spec: ImageSpec
    format: ImageFormat | None = None

    def resolved(self, binding: Binding, where: str, like: ImageFormat | None = None) -> BufferArgument:
        """Returns the argument in the format that the kernel declares, or else in that of ``like``."""
        image = binding.image
        if image is None:
            if self.spec.format is None and self.data is not None:
                return BufferArgument(self.key, self.data.shape, element_type_of(self.data.dtype), self.data)
            descriptor_type = binding.descriptor_type_name.replace("_", " ")
            hint = "give --sampler" if descriptor_type == "sampler" else "write a buffer such as 256x256x4xf32"
            raise usage_error(f"{where}: the binding is a {descriptor_type}, which takes no image; {hint}")
        declared = "" if not image.storage or image.format == "unknown" else image.format
        text = shorten(self.spec.text)
        with usage(where):
            image_format, grid, data = self.spec.resolved(like.name if like else declared, image.sampled.kind, text)
            if data is not None and data.dtype != image_format.dtype:
                # Converted to the stored format, so that expected values are compared with representable values.
                whole = checked_shape(data, ImageLayout("", grid), image_format, text)
                data = from_texels(to_texels(whole, image_format, text), image_format)
        if declared and image_format.spirv_name != declared:
            raise usage_error(f"{where}: the kernel declares {ImageFormat.parse(declared)}, got {image_format}")
        shape = (*grid, *image_format.texel_shape())
        element = element_type_of(image_format.dtype)
        return dataclasses.replace(self, shape=shape, element_type=element, data=data, format=image_format)

    @property
    def resolved_format(self) -> ImageFormat:
        assert self.format is not None
        return self.format

    def value(self, device: Device, binding: Binding, sampler: Sampler | None) -> DeviceImage | TexelArray:
        """Returns the image, or the array as texels, for the call."""
        assert binding.image is not None
        data = np.zeros(self.shape, self.element_type.require_dtype()) if self.data is None else self.data
        with usage(f"--binding {self.key.text}"):
            made = image_for(device, data, self.resolved_format, binding.image, levels=self.spec.levels)
            return made if sampler is None or isinstance(made, TexelArray) else made.with_sampler(sampler)

    def text(self, result: Array) -> str:
        values = format_value(result, element_type=self.element_type).partition("=")[2]
        grid = result.shape[: result.ndim - len(self.resolved_format.texel_shape())]
        return f"{format_shape(grid)}x{self.resolved_format}={values}"


def result_text(argument: BufferArgument, result: Array) -> str:
    """Returns a result's printed form: ``4xf32=1 2 3 4``, ``2x2xr8unorm=[0 1][2 3]``."""
    if isinstance(argument, (ImageArgument, BlockArgument)):
        return argument.text(result)
    return format_value(result, element_type=argument.element_type)


def result_bytes(argument: BufferArgument, result: Array) -> bytes:
    """Returns the bare bytes of a result."""
    if isinstance(argument, ImageArgument):
        return to_texels(result, argument.resolved_format).tobytes()
    if isinstance(argument, BlockArgument):
        return result.tobytes()
    return argument.element_type.pack(result)


def result_picture(argument: BufferArgument, result: Array, where: str) -> Array:
    """Returns a result as a picture; raises InvalidArgumentError if it is none."""
    if isinstance(argument, ImageArgument):
        return texels_to_picture(to_texels(result, argument.resolved_format), argument.resolved_format, where)
    return array_to_picture(result, where)


@dataclass(frozen=True, slots=True)
class SamplerArgument:
    """A binding's sampler: the keywords of ``Device.sampler``."""

    key: BindingKey
    keywords: Mapping[str, Any]

    def value(self, device: Device) -> Sampler:
        with usage(f"--sampler {self.key.text}"):
            return device.sampler(**self.keywords)


def parse_samplers(texts: Sequence[str]) -> list[SamplerArgument]:
    """Returns the arguments of the repeatable option ``--sampler KEY=NAME=VALUE,…``."""
    arguments = []
    for text in texts:
        key, body = split_key("--sampler", text, SAMPLER_EXAMPLE)
        with usage(f"--sampler {key.text}"):
            arguments.append(SamplerArgument(key, parse_sampler(body)))
    return arguments


def image_argument(key: BindingKey, spec: ImageSpec) -> ImageArgument:
    """Returns an argument whose format and shape are still to be resolved."""
    return ImageArgument(key, (), ElementType.NONE, spec.data, spec)
