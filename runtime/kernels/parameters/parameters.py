"""The parameters of an entry point, and the class for each kind of binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....hal_vulkan import Binding, DeviceLimits, EntryPoint
from .image_parameter import ImageParameter, SamplerParameter, TexelParameter
from .parameter import BufferParameter, Parameter
from .runtime_array import RuntimeArrayParameter

KINDS: Final[Mapping[int, type[Parameter]]] = {
    0: SamplerParameter,
    1: ImageParameter,  # with a sampler
    2: ImageParameter,  # sampled
    3: ImageParameter,  # storage
    4: TexelParameter,  # uniform
    5: TexelParameter,  # storage
    6: BufferParameter,  # uniform
    7: BufferParameter,  # storage
}
"""The class of the parameters of each VkDescriptorType."""


def parameters_of(entry: EntryPoint, limits: DeviceLimits) -> tuple[Parameter, ...]:
    """Returns the parameters of an entry point in the order of a call: by set, binding and index in an array of
    bindings.

    A run-time sized array of bindings is one parameter.
    """
    bindings = [binding for binding in entry.bindings for _ in range(binding.count or 1)]
    return tuple(_parameter(index, binding, limits) for index, binding in enumerate(bindings))


def _parameter(index: int, binding: Binding, limits: DeviceLimits) -> Parameter:
    element = KINDS[binding.descriptor_type](index, binding, limits)
    return element if binding.count else RuntimeArrayParameter(element, limits)
