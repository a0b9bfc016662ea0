"""The arguments of one kernel call: which binding each is for, and what may be wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...status import InvalidArgumentError
from ..arrays.array import DeviceArray
from ..arrays.spec import ArraySpec, check_out
from .parameter import KernelArgument, Parameter

ResultArray: TypeAlias = np.ndarray | DeviceArray
Out: TypeAlias = ResultArray | Sequence[ResultArray] | None
Prepared: TypeAlias = np.ndarray | DeviceArray | ArraySpec


def declared(parameters: Sequence[Parameter]) -> str:
    """What a shader declares, for messages."""
    shown = [f"{p.label}: {p.declared()}{', written' if p.written else ''}" for p in parameters]
    return "; ".join(shown) or "no bindings"


def place_outs(
    parameters: Sequence[Parameter], arrays: Sequence[KernelArgument], out: Out, kernel: str
) -> tuple[KernelArgument, ...]:
    """One argument a binding: ``out`` where written bindings have no positional array.

    Raises:
        InvalidArgumentError: too many or too few.
    """
    if out is None:
        if len(arrays) > len(parameters):
            raise InvalidArgumentError(
                f"{kernel} takes {len(parameters)} array(s), got {len(arrays)}; it declares {declared(parameters)}"
            )
        missing = ", ".join(p.label for p in parameters[len(arrays) :])
        raise InvalidArgumentError(f"{kernel}: {missing} missing; the shader declares {declared(parameters)}")
    outs = _listed(out)
    written = [p.index for p in parameters if p.written]
    if len(arrays) + len(outs) == len(parameters) and len(outs) <= len(written):
        replaced = dict(zip(written[len(written) - len(outs) :], outs, strict=True))
        given = iter(arrays)
        return tuple(replaced[i] if i in replaced else next(given) for i in range(len(parameters)))
    raise InvalidArgumentError(
        f"{kernel}: {len(arrays)} array(s) and {len(outs)} in out= do not fill {len(parameters)} binding(s), "
        f"{len(written)} of them written: {declared(parameters)}"
    )


def prepare_arguments(
    parameters: Sequence[Parameter], arrays: Sequence[KernelArgument], kernel: str
) -> tuple[list[Prepared], bool]:
    """The arguments as arrays, and whether each is known to fit its binding.

    Raises:
        InvalidArgumentError: what cannot become an array.
        ClosedError: an array was closed.
    """
    values: list[Prepared] = []
    fit = True
    for parameter, value in zip(parameters, arrays, strict=True):
        # The usual case without a call.
        if type(value) is np.ndarray and value.flags.c_contiguous and (value.dtype, value.nbytes) in parameter.accepted:
            values.append(value)
        else:
            prepared = parameter.prepare(value, kernel)
            values.append(prepared)
            if (prepared.dtype, prepared.nbytes) not in parameter.accepted:
                fit = False
    return values, fit


def targets_of(out: Out, kernel: str) -> list[int]:
    """The ids of the arrays in ``out=``, which results are copied into.

    Raises:
        InvalidArgumentError: an array that cannot be written in place.
    """
    for one in _listed(out):
        if isinstance(one, np.ndarray):
            check_out(one, one.shape, one.dtype, f"{kernel}: out=")
        elif not isinstance(one, DeviceArray):
            raise InvalidArgumentError(f"{kernel}: out= takes arrays to write into, got {type(one).__name__}")
    return [id(one) for one in _listed(out)]


def _listed(out: Out) -> list[ResultArray]:
    if out is None:
        return []
    return list(out) if isinstance(out, (tuple, list)) else [out]  # type: ignore[list-item]  # checked by targets_of
