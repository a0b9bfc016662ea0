"""Resources for descriptors, checked against the shader's declaration.

A mismatch never reaches the driver: the error names the binding, the shader's declaration and the resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from ...hal.buffer import Buffer as AnyBuffer
from ...spirv.reflection.reflection_types import Binding, ImageType
from ...status import ClosedError, InvalidArgumentError, OutOfRangeError
from ..images.format_features import (
    STORAGE_READ_WITHOUT_FORMAT,
    STORAGE_TEXELS,
    STORAGE_WRITE_WITHOUT_FORMAT,
    UNIFORM_TEXELS,
    ImageUsage,
    format_features,
    formats_with,
)
from ..images.image_view import CombinedImageSampler, ImageView
from ..images.sampler import Sampler
from ..images.texel_buffer import TexelBuffer
from ..instance.logical_device import LogicalDevice
from ..instance.profile import DeviceLimits
from ..memory.buffer import Buffer

Resource: TypeAlias = Buffer | ImageView | Sampler | CombinedImageSampler | TexelBuffer
RESOURCES: Final = (AnyBuffer, ImageView, Sampler, CombinedImageSampler, TexelBuffer)
ABSENT: Final = bytes(32)
"""The descriptor of an absent element of an array."""

# VkDescriptorType
SAMPLER: Final = 0
COMBINED_IMAGE_SAMPLER: Final = 1
SAMPLED_IMAGE: Final = 2
STORAGE_IMAGE: Final = 3
UNIFORM_TEXEL_BUFFER: Final = 4
STORAGE_TEXEL_BUFFER: Final = 5
UNIFORM_BUFFER: Final = 6
STORAGE_BUFFER: Final = 7


class Kind(NamedTuple):
    """A descriptor type: its name, its resources, and the limits that it counts against, ``*`` for both of them.

    A limit is the end of ``max_per_stage_descriptor_*`` and ``max_descriptor_set_*``.
    """

    name: str
    resource: type
    limits: tuple[str, ...]
    native: str
    """The structure that a VkWriteDescriptorSet takes."""


KINDS: Final[dict[int, Kind]] = {
    SAMPLER: Kind("sampler", Sampler, ("samplers",), "VkDescriptorImageInfo"),
    COMBINED_IMAGE_SAMPLER: Kind(
        "image with a sampler", CombinedImageSampler, ("samplers", "sampled_images"), "VkDescriptorImageInfo"
    ),
    SAMPLED_IMAGE: Kind("sampled image", ImageView, ("sampled_images",), "VkDescriptorImageInfo"),
    STORAGE_IMAGE: Kind("storage image", ImageView, ("storage_images",), "VkDescriptorImageInfo"),
    UNIFORM_TEXEL_BUFFER: Kind("uniform texel buffer", TexelBuffer, ("sampled_images",), "VkBufferView"),
    STORAGE_TEXEL_BUFFER: Kind("storage texel buffer", TexelBuffer, ("storage_images",), "VkBufferView"),
    UNIFORM_BUFFER: Kind("uniform buffer", AnyBuffer, ("uniform_buffers",), "VkDescriptorBufferInfo"),
    STORAGE_BUFFER: Kind("storage buffer", AnyBuffer, ("storage_buffers",), "VkDescriptorBufferInfo"),
}


def most_descriptors(limits: DeviceLimits, limit: str) -> int:
    """Returns the largest number of descriptors that a shader may use among those that count against a limit (see
    ``Kind``).
    """
    per_stage: int = getattr(limits, f"max_per_stage_descriptor_{limit}")
    per_set: int = getattr(limits, f"max_descriptor_set_{limit}")
    return min(per_stage, per_set)


def check_resource(
    name: str, where: str, device: LogicalDevice, kind: int, declared: Binding | None, resource: object
) -> None:
    """Raises if a descriptor cannot refer to a resource.

    Args:
        name: the pipeline, for messages.
        where: the binding, for messages.
        device: the shader's device.
        kind: the VkDescriptorType.
        declared: the shader's declaration, if it uses the binding.
        resource: the resource to bind.
    """
    if not isinstance(resource, KINDS[kind].resource) or not isinstance(resource, RESOURCES):
        raise InvalidArgumentError(f"{name}: {where} takes {_takes(kind, declared)}, got {_described(resource)}")
    if resource.device is not device:
        raise InvalidArgumentError(
            f"{name}: the {noun_of(resource).split()[1]} for {where} belongs to another device; copy it over"
        )
    if resource.is_closed:
        raise ClosedError(f"{name}: the {noun_of(resource).split()[1]} for {where} was closed")
    if isinstance(resource, AnyBuffer):
        _check_buffer(f"{name}: the buffer for {where}", device, kind, resource)
        return
    image = None if declared is None else declared.image
    if declared is None or image is None or isinstance(resource, Sampler):
        return
    reasons = [_mismatch(image_type, declared, resource) for image_type in (image, *declared.image_aliases)]
    if all(reasons):
        raise InvalidArgumentError(
            f"{name}: {where} takes {_takes(kind, declared)}, got {_described(resource)}: {reasons[0]}"
        )


def _check_buffer(where: str, device: LogicalDevice, kind: int, buffer: AnyBuffer) -> None:
    limits, name = device.profile.limits, device.profile.name
    if kind == STORAGE_BUFFER:
        alignment, most = limits.min_storage_buffer_offset_alignment, limits.max_storage_buffer_range
    else:
        alignment, most = limits.min_uniform_buffer_offset_alignment, limits.max_uniform_buffer_range
    if buffer.offset % alignment:
        raise InvalidArgumentError(
            f"{where} starts at byte {buffer.offset} of its block; {name} binds multiples of "
            f"{alignment}. Copy it to a buffer of its own"
        )
    if buffer.size > most or not buffer.size:
        limit = "maxStorageBufferRange" if kind == STORAGE_BUFFER else "maxUniformBufferRange"
        raise OutOfRangeError(
            f"{where} has {buffer.size:,} bytes; this device binds 1 to {most:,} ({limit}). "
            + ("Allocate at least one element" if not buffer.size else "Bind parts of it")
        )


def _mismatch(image: ImageType, declared: Binding, resource: ImageView | CombinedImageSampler | TexelBuffer) -> str:
    """Returns the reason why a shader's image binding does not accept an image; empty if it does."""
    sampled = image.sampled
    if isinstance(resource, TexelBuffer):
        texels, features = resource.format, resource.features
        scalar: str = texels.scalar
        if not features & (STORAGE_TEXELS if image.storage else UNIFORM_TEXELS):
            use = "storage" if image.storage else "uniform"
            having = formats_with(resource.device, texels, buffer=STORAGE_TEXELS if image.storage else UNIFORM_TEXELS)
            return f"the device has no {use} texel buffers of {texels}; it has: {having}"
    else:
        view = resource.view if isinstance(resource, CombinedImageSampler) else resource
        texels, scalar = view.format, view.scalar
        dim = "2d" if image.dim == "rect" else image.dim
        if (view.dim, view.arrayed) != (dim, image.arrayed):
            arguments = f"dim={dim!r}, arrayed={image.arrayed}"
            return f"the dimensions differ; view the image with {arguments}, or make one of these dimensions"
        if (view.image.samples > 1) != image.multisampled:
            return "one is multisampled, the other is not"
        needed = ImageUsage.STORAGE if image.storage else ImageUsage.SAMPLED
        if not view.usage & needed:
            return f"the image may be used for {view.usage.name or 'nothing'}, not for {needed.name}; make it with that"
        if isinstance(resource, CombinedImageSampler) and image.depth and resource.sampler.compare is None:
            return "the shader compares, the sampler does not; make it with compare="
    if scalar != sampled.kind or (texels.channel_bits == 64) != (sampled.bits == 64):
        return f"texels of {texels} are read as {scalar}s of {max(32, texels.channel_bits)} bits"
    if not image.storage:
        return ""
    if image.format != "unknown":
        return "" if image.format == texels.spirv_name else f"the format has to be {image.format}"
    features = format_features(resource.device, texels).image
    if isinstance(resource, TexelBuffer):
        features |= format_features(resource.device, texels).buffer
    for used, bit, verb in (
        (declared.readable, STORAGE_READ_WITHOUT_FORMAT, "reads"),
        (declared.writable, STORAGE_WRITE_WITHOUT_FORMAT, "writes"),
    ):
        if used and not features & bit:
            return (
                f"the shader {verb} it without naming a format, which the device does for "
                f"{formats_with(resource.device, texels, image=bit)}"
            )
    return ""


def _takes(kind: int, declared: Binding | None) -> str:
    """Describes the shader's declaration: ``"a sampled image (2d, float)"``."""
    images: Sequence[ImageType] = ()
    if declared is not None and declared.image is not None:
        images = (declared.image, *declared.image_aliases)
    name = KINDS[kind].name
    described = " or ".join(dict.fromkeys(map(_image_text, images)))
    return f"{'an' if name[0] in 'aei' else 'a'} {name}" + (f" ({described})" if described else "")


def _image_text(image: ImageType) -> str:
    words = [image.dim + (" array" if image.arrayed else "")] if image.dim != "buffer" else []
    words += ["multisampled"] if image.multisampled else []
    words += ["compared"] if image.depth else []
    words += [image.sampled.kind + ("64" if image.sampled.bits == 64 else "")]
    if image.storage:
        words.append(f"format {image.format}" if image.format != "unknown" else "any format")
    return ", ".join(words)


def noun_of(resource: object) -> str:
    """Returns the noun for a resource with its article, for messages."""
    if isinstance(resource, Sampler):
        return "a sampler"
    return "an image" if isinstance(resource, (ImageView, CombinedImageSampler)) else "a buffer"


def _described(resource: object) -> str:
    if isinstance(resource, AnyBuffer):
        return f"a buffer of {resource.size:,} bytes"
    if isinstance(resource, (ImageView, CombinedImageSampler, Sampler, TexelBuffer)):
        return resource.describe()
    if resource is None:
        return "nothing, which only arrays take, on devices with the feature descriptorBindingPartiallyBound"
    return type(resource).__name__
