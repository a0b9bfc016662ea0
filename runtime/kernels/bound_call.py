"""Bound calls: arguments in the order of a kernel's parameters, and push constants as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ...hal_vulkan import EntryPoint, PushConstantBlock, ShaderModuleReflection
from ...spirv.reflection.block_dtype import member_names
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.transfer import Transfer
from ..images.bound import Bound
from .parameters.arguments import Counts, Groups, Out, PerElement, given_counts
from .parameters.names import Names
from .parameters.parameter import KernelArgument, Parameter
from .parameters.pointers import Pointers
from .parameters.push import Defaults, Named, Push, PushConstants
from .parameters.unused import Unused

Sources: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Payloads of the work that made the values that a call reads, and those that it only writes."""
NO_SOURCES: Final[Sources] = ((), ())


class BoundCall:
    """One call, from its arguments to its submission.

    Attributes:
        arrays: the arguments, one for each parameter of the kernel.
        groups: the workgroup counts, or the argument whose elements tell them; ``None`` infers them from the arrays.
        push: the bytes of the push constants.
        out: the arrays in ``out=``, which are among ``arrays`` too.
        pointed: the arrays of the device whose addresses the call passes.

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
    ) -> None:
        self.arrays: Sequence[KernelArgument] = arrays
        self.groups: Counts | PerElement | None = groups
        self.push: bytes = push
        self.out: Out = out
        self.pointed: Sequence[DeviceArray] = pointed
        self.ranges: bytes | None = None
        self.sources: Sources = NO_SOURCES
        self.transfer: Transfer | None = None
        self.epoch: int = -1


class Binder:
    """Binds the arguments of calls of one kernel.

    Attributes:
        names: the names that a call may use.
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
        self._loose = next((p.index for p in parameters if p.binding is loose), None)
        parameters = [p for p in parameters if p.binding is not loose]
        noun = PushConstantBlock.noun if block is None else block.noun
        self.names: Names = Names(parameters, tuple(constants), kernel, unused, noun)
        self._kernel = kernel
        self._count = len(parameters)
        self._takes_push = block is not None
        self._pointers = Pointers(device, reflection, entry, kernel, push_defaults)
        self._push = PushConstants(block, kernel, self.names.check_push, push_defaults)

    def grid(self, groups: Groups) -> Counts | PerElement:
        """Returns workgroup counts, or the argument that tells them; raises InvalidArgumentError for other values."""
        return self.names.grid(groups) if isinstance(groups, str) else given_counts(groups, self._kernel)

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
        counts = None if groups is None else self.grid(groups)
        if self._unused.present and (named or push is not None):
            named, push = self._unused.without_named(named, push)
        if len(arrays) != self._count or out is not None or (named and self._unused.present):
            arrays, named = self.names.place(arrays, out, named)
        pointed: Sequence[DeviceArray] = ()
        if uses is not None or self._pointers.present:
            pointed = self._pointers.collect(uses, arrays, push, named)
            named = self._pointers.with_addresses(named)
        data = self._push.pack(push, named) if self._takes_push or named or push is not None else b""
        if self._loose is not None:
            values = np.frombuffer(data, np.uint8)
            arrays, data = (*arrays[: self._loose], values, *arrays[self._loose :]), b""
        return BoundCall(arrays, counts, data, out, pointed)
