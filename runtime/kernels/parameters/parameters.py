"""The parameters of an entry point, the class for each kind of binding, and run-time sized arrays of bindings.

Run-time sized arrays take a list, which may have gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ....hal_vulkan import Binding, DeviceLimits, EntryPoint
from ....status import InvalidArgumentError
from ...arrays.transfer import Transfer
from .image_parameter import ImageParameter, SamplerParameter, TexelParameter
from .parameter import BufferParameter, KernelArgument, Parameter, Prepared


class RuntimeArrayParameter(Parameter):
    """A run-time sized array of bindings. A call splits its list, and each item goes through ``element``.

    Attributes:
        element: the parameter of an item.
    """

    __slots__ = ("element",)

    def __init__(self, element: Parameter, limits: DeviceLimits) -> None:
        super().__init__(element.index, element.binding, limits)
        self.element: Parameter = element
        self.dtype: np.dtype[np.generic] | None = element.dtype
        self.head: int
        self.stride: int
        self.stride, self.head = element.stride, element.head

    def declared(self) -> str:
        return f"a list, each {self.element.declared()}"

    def element_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.element.element_axes(shape)

    def items(self, value: KernelArgument, size: int, kernel: str) -> list[KernelArgument]:
        """Returns the items of an argument, at most ``size``."""
        if not isinstance(value, (list, tuple)):
            got = f"one array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise InvalidArgumentError(f"{kernel}: {self.label} takes {self.declared()}; got {got}")
        if len(value) > size:
            raise InvalidArgumentError(f"{kernel}: {self.label} takes up to {size} items here, got {len(value)}")
        return list(value)

    def prepare(self, value: KernelArgument, kernel: str) -> Prepared:
        return self.element.prepare(value, kernel)

    def check(self, value: Prepared, kernel: str) -> None:
        self.element.check(value, kernel)

    def bring(self, transfer: Transfer, value: Prepared, into: np.ndarray | None) -> None:
        self.element.bring(transfer, value, into)


def take_apart(
    parameters: Sequence[Parameter], arrays: Sequence[KernelArgument], sizes: dict[int, int], kernel: str
) -> tuple[list[Parameter], list[KernelArgument]]:
    """Replaces the lists for run-time sized arrays by their items, in parameters and arguments.

    ``sizes`` are the greatest item counts by the parameter's index.
    """
    flat: list[Parameter] = []
    values: list[KernelArgument] = []
    for parameter, value in zip(parameters, arrays, strict=True):
        if isinstance(parameter, RuntimeArrayParameter):
            items = parameter.items(value, sizes[parameter.index], kernel)
            flat += [parameter.element] * len(items)
            values += items
        else:
            flat.append(parameter)
            values.append(value)
    return flat, values


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
    """Returns the parameters of an entry point in the order of a call: by set, binding and array index.

    A run-time sized array of bindings is one parameter.
    """
    bindings = [binding for binding in entry.bindings for _ in range(binding.count or 1)]
    return tuple(_parameter(index, binding, limits) for index, binding in enumerate(bindings))


def _parameter(index: int, binding: Binding, limits: DeviceLimits) -> Parameter:
    element = KINDS[binding.descriptor_type](index, binding, limits)
    return element if binding.count else RuntimeArrayParameter(element, limits)
