"""Arrays that a kernel gets by address: collected from a call's arguments, checked, and passed as addresses.

The device keeps the memory of descriptors alive, but not that of addresses. So a call keeps the arrays whose addresses
it passes, and those in ``uses=``, alive, and notes its work in each: later reads wait for the work, and memory is freed
after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ....hal_vulkan import BlockMember, EntryPoint, ShaderModuleReflection
from ....spirv.reflection.block_dtype import member_names, only_array
from ....status import InvalidArgumentError
from ...arrays.array import DeviceArray
from ...arrays.array_device import ArrayDevice
from .block import has_pointer
from .parameter import BlockRules
from .push import Defaults, Named


class Pointers:
    """The pointers that a kernel takes, in push constants and in blocks.

    Attributes:
        present: whether the kernel has any pointers.
    """

    def __init__(
        self,
        device: ArrayDevice,
        reflection: ShaderModuleReflection,
        entry: EntryPoint,
        kernel: str,
        defaults: Defaults,
    ) -> None:
        self._device = device
        self._kernel = kernel
        self._pointees = {block.name: BlockRules(block) for block in reflection.pointees}
        self._push = entry.constants.members if entry.constants else ()
        self._defaults: Mapping[str, object] = defaults if isinstance(defaults, Mapping) else {}
        bindings = [binding for binding in entry.bindings if binding is not entry.loose_uniforms]
        self._blocks = [binding.blocks[0].members for binding in bindings for _ in range(binding.count or 1)]
        self._accepted: set[tuple[str, np.dtype[np.generic], int]] = set()
        plain = [name for name, m in member_names(self._push).items() if m.pointee and not m.array_shape]
        self._plain = frozenset(plain)
        self.present: bool = any(map(has_pointer, self._push)) or any(
            any(map(has_pointer, members)) for members in self._blocks
        )

    def collect(
        self,
        uses: object,
        arrays: Sequence[object],
        push: object,
        named: Mapping[str, object],
    ) -> list[DeviceArray]:
        """Returns the arrays that a call passes by address: those in ``uses``, in push constants and in blocks.

        Raises:
            ClosedError: an array was closed.
            InvalidArgumentError: an array is on another device, or does not fit the pointer's block.
        """
        pointed: list[DeviceArray] = []
        if uses is None:
            uses = ()
        elif not isinstance(uses, (list, tuple)):
            uses = (uses,)
        for array in uses:
            if not isinstance(array, DeviceArray):
                raise InvalidArgumentError(
                    f"{self._kernel}: uses= takes a list of the arrays on the device whose addresses the call passes; "
                    f"got {type(array).__name__}"
                )
            self._check_device(array)
            pointed.append(array)
        values: dict[str, object] = {**self._defaults}
        if isinstance(push, Mapping):
            values.update(push)
        elif isinstance(push, (list, tuple)):
            values.update(zip(member_names(self._push), push, strict=False))
        values.update(named)
        pairs = list(_in_members(self._push, values))
        for members, value in zip(self._blocks, arrays, strict=True):
            pairs += _in_block(members, value)
        for pointee, array in pairs:
            self._check(pointee, array)
            pointed.append(array)
        return pointed

    def with_addresses(self, named: Named) -> Named:
        """Replaces arrays in push constants by addresses, so that ``PushConstants`` finds the packed bytes again."""
        return {
            name: value.device_address if type(value) is DeviceArray and name in self._plain else value
            for name, value in named.items()
        }

    def _check_device(self, array: DeviceArray) -> None:
        array._check_open()
        if array.device is not self._device:
            raise InvalidArgumentError(
                f"{self._kernel} runs on {self._device.name}; an array passed by address is on another "
                f"device, {array.device.name}: copy it with device.asarray(x)"
            )

    def _check(self, pointee: str, array: DeviceArray) -> None:
        self._check_device(array)
        key = pointee, array.dtype, array.nbytes
        rules = self._pointees.get(pointee)
        if key in self._accepted or rules is None:
            return
        wrong = rules.misfit(array.dtype, array.shape, array.nbytes, pointee=True)
        if wrong:
            raise InvalidArgumentError(f"{self._kernel}: a pointer to {pointee} got {wrong}")
        if len(self._accepted) < 256:
            self._accepted.add(key)


def _in_members(members: Sequence[BlockMember], values: Mapping[str, object]) -> Iterator[tuple[str, DeviceArray]]:
    """Yields each device array in members' values, with the name of the pointer's declared target."""
    for name, member in member_names(members).items():
        if name in values:
            yield from _in_value(member, values[name])


def _in_value(member: BlockMember, value: object) -> Iterator[tuple[str, DeviceArray]]:
    if isinstance(value, DeviceArray):
        if member.pointee:
            yield member.pointee, value
    elif isinstance(value, Mapping):
        yield from _in_members(member.members, value)
    elif isinstance(value, (list, tuple)) and has_pointer(member):
        for item in value:
            yield from _in_value(member, item)


def _in_block(members: Sequence[BlockMember], value: object) -> Iterator[tuple[str, DeviceArray]]:
    array = only_array(members)
    if isinstance(value, Mapping):
        yield from _in_members(members, value)
    elif array is not None and isinstance(value, (list, tuple)):
        yield from _in_value(array, value)
