"""Results of a kernel's calls: which arrays they are, and the work that they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ..arrays.array import DeviceArray
from ..arrays.spec import ArraySpec
from ..arrays.transfer import Placed
from ..images.host_image import HostImage
from .parameters.parameter import Parameter, Prepared, ResultArray

KernelResult: TypeAlias = ResultArray | tuple[ResultArray, ...] | None
"""What a call gives: the array that the kernel writes, several as a tuple, or None."""

OF_HOST: Final = (np.ndarray, ArraySpec, HostImage)
"""Arguments that are not on the device."""


def marked(parameters: Sequence[Parameter], arrays: Sequence[DeviceArray], payload: int) -> KernelResult:
    """The results of a call with arrays of the device, which note its work."""
    written: list[DeviceArray] = []
    for array, parameter in zip(arrays, parameters, strict=True):
        root = array if array._base is None else array._base
        if root._last_use < payload:  # see DeviceArray.mark
            root._last_use = payload
        if parameter.written:
            written.append(array)
            if root._ready < payload:
                root._ready = payload
    return written[0] if len(written) == 1 else tuple(written) or None


def mark_placed(
    parameters: Sequence[Parameter], placed: Sequence[Placed], values: Sequence[Prepared], payload: int
) -> None:
    """Notes the work that uses arguments on the device, and those that they are copies of."""
    for parameter, one, value in zip(parameters, placed, values, strict=True):
        one.mark(payload, written=parameter.written)
        if value is not one and not isinstance(value, OF_HOST):
            value.mark(payload, written=parameter.written)


def results_of(parameters: Sequence[Parameter], results: Sequence[object]) -> KernelResult:
    """The results of a call, of what each parameter brought back."""
    written: list[ResultArray] = []
    for parameter, result in zip(parameters, results, strict=True):
        if parameter.written and result is not None:
            written.append(result)  # type: ignore[arg-type]  # what a written parameter brings back is one
    return written[0] if len(written) == 1 else tuple(written) or None
