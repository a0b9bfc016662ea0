"""The descriptors of a kernel's calls: the items of run-time sized arrays, and the resource for each descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hal_vulkan import ComputePipeline
from ...status import InvalidArgumentError
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.transfer import Placed, Transfer
from ..images.bound import ABSENT, Bound
from .parameters.parameter import BufferParameter, KernelArgument, Parameter, Prepared
from .parameters.parameters import RuntimeArrayParameter, take_apart


class KernelDescriptors:
    """The descriptors of a kernel.

    Attributes:
        array_sizes: the descriptor counts of the run-time sized arrays of bindings, by the index of their parameter.
    """

    def __init__(
        self, device: ArrayDevice, pipeline: ComputePipeline, parameters: Sequence[Parameter], kernel: str
    ) -> None:
        """Prepares the descriptors; ``kernel`` is the kernel's name, for messages."""
        self._device = device
        self._parameters = parameters
        self._kernel = kernel
        interface = pipeline.interface
        self._partial = interface.partial
        self._only_buffers = not self._partial and all(type(p) is BufferParameter for p in parameters)
        sizes = {(i, b): count for i, key in enumerate(interface.set_layouts) for b, _, count in key}
        self.array_sizes: dict[int, int] = {
            p.index: sizes[p.binding.set, p.binding.binding] for p in parameters if isinstance(p, RuntimeArrayParameter)
        }

    def take_apart(self, arrays: Sequence[KernelArgument]) -> tuple[Sequence[Parameter], Sequence[KernelArgument]]:
        """Returns parameters and arguments, one for each descriptor of the call."""
        if not self.array_sizes:
            return self._parameters, arrays
        return take_apart(self._parameters, arrays, self.array_sizes, self._kernel)

    def put_together(self, parameters: Sequence[Parameter], values: Sequence[Any]) -> Sequence[KernelArgument]:
        """Undoes ``take_apart``: returns one argument for each of the kernel's parameters."""
        whole: dict[int, list[Any]] = {}
        for parameter, value in zip(parameters, values, strict=True):
            whole.setdefault(parameter.index, []).append(None if value is ABSENT else value)
        return [whole.get(p.index, []) if p.index in self.array_sizes else whole[p.index][0] for p in self._parameters]

    def check(self, parameters: Sequence[Parameter], values: Sequence[Prepared]) -> None:
        """Raises if a prepared value does not fit its parameter."""
        for parameter, value in zip(parameters, values, strict=True):
            if value is not ABSENT:
                parameter.check(value, self._kernel)

    def check_absent(self, parameter: Parameter) -> None:
        """Raises if the device needs all elements of this array of bindings."""
        if (parameter.binding.set, parameter.binding.binding) not in self._partial:
            raise InvalidArgumentError(
                f"{self._kernel}: {parameter.label} got None; {self._device.name} has no arrays of bindings with gaps "
                "(descriptorBindingPartiallyBound)"
            )

    def place(
        self,
        transfer: Transfer,
        parameters: Sequence[Parameter],
        values: Sequence[Prepared],
        arrays: Sequence[KernelArgument],
        outs: Sequence[int],
    ) -> tuple[Sequence[DeviceArray | Bound], Sequence[Parameter]]:
        """Brings prepared values to the device; returns the resource for each descriptor, and its parameter.

        ``outs`` are the ids of the ``arrays`` that receive results.
        """
        for parameter, value, array in zip(parameters, values, arrays, strict=True):
            into = array if outs and id(array) in outs and isinstance(array, np.ndarray) else None
            if self._only_buffers:
                transfer.bring(value, written=parameter.written, into=into)  # type: ignore[arg-type]  # an array
            elif value is ABSENT:
                self.check_absent(parameter)
                transfer.carry(ABSENT, None)
            else:
                parameter.bring(transfer, value, into)
        placed = transfer.place()
        if self._only_buffers:
            return placed, parameters  # type: ignore[return-value]  # arrays
        return self.bound(parameters, placed, values)

    def bound(
        self, parameters: Sequence[Parameter], placed: Sequence[Placed], values: Sequence[Prepared]
    ) -> tuple[Sequence[DeviceArray | Bound], Sequence[Parameter]]:
        """Returns the resource for each descriptor, and its parameter; fills arrays of bindings with absent items."""
        absent = Bound(None, (), 0)
        bound = [
            absent if argument is ABSENT else parameter.bind(argument, value, self._device, self._kernel)
            for parameter, argument, value in zip(parameters, placed, values, strict=True)
        ]
        if not self.array_sizes:
            return bound, parameters
        all_bound: list[DeviceArray | Bound] = []
        declarations: list[Parameter] = []
        for parameter in self._parameters:
            mine = [argument for argument, of in zip(bound, parameters, strict=True) if of.index == parameter.index]
            mine += [absent] * (self.array_sizes.get(parameter.index, len(mine)) - len(mine))
            all_bound += mine
            declarations += [parameter] * len(mine)
        return all_bound, declarations
