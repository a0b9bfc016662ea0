"""Results of a kernel's calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ..arrays.spec import ArraySpec
from ..images.host_image import HostImage
from .parameters.parameter import Parameter, Prepared, ResultArray

KernelResult: TypeAlias = ResultArray | tuple[ResultArray, ...] | None
"""The result of a call: the array that the kernel writes, several as a tuple, or None."""

OF_HOST: Final = (np.ndarray, ArraySpec, HostImage)
"""Arguments that are not on the device."""


def empty_results(parameters: Sequence[Parameter], values: Sequence[Prepared]) -> KernelResult:
    """Returns the results of a call whose arguments are all empty, so that there is nothing to run."""
    arrays = [np.empty(value.shape, value.dtype) if isinstance(value, OF_HOST) else value for value in values]
    return results_of(parameters, arrays)


def results_of(parameters: Sequence[Parameter], results: Sequence[object]) -> KernelResult:
    """Returns the results of a call, from the value that each parameter returned."""
    written: list[ResultArray] = []
    for parameter, result in zip(parameters, results, strict=True):
        if parameter.written and result is not None:
            written.append(result)  # type: ignore[arg-type]  # what a written parameter returns is one
    return written[0] if len(written) == 1 else tuple(written) or None
