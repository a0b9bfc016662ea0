"""Bound calls: arguments in the order of a kernel's parameters, and push constants as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ...hal_vulkan import BlockMember, EntryPoint, PushConstantBlock, ShaderModuleReflection
from ...spirv.reflection.block_dtype import member_names
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.transfer import Transfer
from ..images.bound import Bound
from .parameters.arguments import Counts, Groups, HostGroups, Out, PerElement, check_indirect, given_counts
from .parameters.names import Names
from .parameters.parameter import KernelArgument, Parameter
from .parameters.pointers import Pointers
from .parameters.push import Defaults, Named, Push, PushConstants
from .parameters.unused import Unused

Sources: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Payloads of the work that wrote the values that a call reads, and the values that it only overwrites."""
NO_SOURCES: Final[Sources] = ((), ())


class BoundCall:
    """One call, from its arguments to its submission.

    Attributes:
        arrays: the arguments, one for each parameter of the kernel.
        groups: the workgroup counts, or the argument whose elements tell them; ``None`` infers them from the arrays.
        push: the bytes of the push constants.
        out: the arrays in ``out=``, which are also among ``arrays``.
        pointed: the arrays of the device that the call uses without binding them: by address, or for ``indirect``.
        indirect: the array on the device that has the workgroup counts; ``None`` where ``groups`` has them.
        loose: the bytes of the uniforms outside of blocks, which are among ``arrays`` too.

        bound, parameters: set by the plan: the resource for each descriptor, and its parameter.
        ranges: the descriptors of a resident call.
        sources: the work whose results the call uses, if any verdict on work is pending.
        transfer: the copies around the kernel; ``None`` for a resident call.
        epoch: the device's ``close_epoch`` from before the arrays were checked.
    """

    __slots__ = (
        "arrays",
        "bound",
        "epoch",
        "groups",
        "indirect",
        "loose",
        "out",
        "parameters",
        "pointed",
        "push",
        "ranges",
        "sources",
        "transfer",
    )

    bound: Sequence[DeviceArray | Bound]
    parameters: Sequence[Parameter]

    def __init__(
        self,
        arrays: Sequence[KernelArgument],
        groups: Counts | PerElement | None,
        push: bytes,
        out: Out,
        pointed: Sequence[DeviceArray],
        indirect: DeviceArray | None = None,
        loose: bytes = b"",
    ) -> None:
        self.arrays: Sequence[KernelArgument] = arrays
        self.groups: Counts | PerElement | None = groups
        self.push: bytes = push
        self.out: Out = out
        self.pointed: Sequence[DeviceArray] = pointed
        self.indirect: DeviceArray | None = indirect
        self.loose: bytes = loose
        self.ranges: bytes | None = None
        self.sources: Sources = NO_SOURCES
        self.transfer: Transfer | None = None
        self.epoch: int = -1


class Binder:
    """Binds the arguments of calls of one kernel.

    Attributes:
        names: the names that a call may use.
        loose: the index of the parameter of the uniforms outside of blocks, or ``None``.
    """

    def __init__(
        self,
        device: ArrayDevice,
        reflection: ShaderModuleReflection,
        entry: EntryPoint,
        parameters: Sequence[Parameter],
        kernel: str,
        push_defaults: Defaults,
    ) -> None:
        block, loose = entry.constants, entry.loose_uniforms
        constants = member_names(block.members) if block is not None else ()
        self._unused = unused = Unused(reflection, entry, kernel)
        push_defaults = unused.without_defaults(push_defaults)
        self.loose: int | None = next((p.index for p in parameters if p.binding is loose), None)
        parameters = [p for p in parameters if p.binding is not loose]
        noun = PushConstantBlock.noun if block is None else block.noun
        self.names: Names = Names(parameters, tuple(constants), kernel, unused, noun)
        self._device = device
        self._kernel = kernel
        self._count = len(parameters)
        self._takes_push = block is not None
        self._pointers = Pointers(device, reflection, entry, kernel, push_defaults)
        self._push = PushConstants(block, kernel, self.names.check_push, push_defaults)

    def grid(self, groups: HostGroups) -> Counts | PerElement:
        """Returns workgroup counts, or the argument that determines them; InvalidArgumentError for other values."""
        return self.names.grid(groups) if isinstance(groups, str) else given_counts(groups, self._kernel)

    @property
    def push_members(self) -> Mapping[str, BlockMember]:
        """The push constants by name, or the uniforms outside of blocks."""
        return self._push.members

    def with_push_value(self, push: bytes, name: str, value: object) -> bytes:
        """Returns the bytes of push constants with another value of one."""
        return self._push.with_value(push, name, value)

    def bind(
        self,
        arrays: Sequence[KernelArgument],
        named: Named,
        *,
        out: Out = None,
        groups: Groups | None = None,
        push: Push = None,
        uses: object = None,
    ) -> BoundCall:
        """Binds the arguments of ``Kernel.__call__``, which documents them.

        Raises:
            InvalidArgumentError: the number of arrays, names, workgroup counts or push constants are wrong. Dtypes and
                sizes of arrays are checked later.
        """
        indirect: DeviceArray | None = None
        counts: Counts | PerElement | None = None
        if groups is not None:
            if isinstance(groups, DeviceArray):
                check_indirect(groups, self._device, self._kernel)
                indirect, groups = groups, 1  # no counts are inferred
            counts = self.grid(groups)
        if (named or push is not None) and self._unused.present:
            named, push = self._unused.without_named(named, push)
        if len(arrays) != self._count or out is not None or (named and self._unused.present):
            arrays, named = self.names.place(arrays, out, named)
        pointed: Sequence[DeviceArray] = ()
        if uses is not None or self._pointers.present:
            pointed = self._pointers.collect(uses, arrays, push, named)
            named = self._pointers.with_addresses(named)
        if indirect is not None:
            pointed = [*pointed, indirect]
        data = self._push.pack(push, named) if self._takes_push or named or push is not None else b""
        loose = b""
        if self.loose is not None:
            values, loose, data = np.frombuffer(data, np.uint8), data, b""
            arrays = (*arrays[: self.loose], values, *arrays[self.loose :])
        return BoundCall(arrays, counts, data, out, pointed, indirect, loose)
