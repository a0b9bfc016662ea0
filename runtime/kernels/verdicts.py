"""Which verdicts a call's results are held against: its own, and those on the work that made what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..arrays.array import DeviceArray
from ..arrays.verdict import Verdict, Verdicts
from .parameters.parameter import Parameter

_NO_VERDICTS: Final[frozenset[Verdict]] = frozenset()


def hold_arrays(
    known: Verdicts,
    parameters: Sequence[Parameter],
    arrays: Sequence[DeviceArray],
    verdict: Verdict | None,
    payload: int,
    reached: int,
) -> None:
    """``hold`` for the usual case: the arrays are made by calls of this kernel that nobody has read, or known."""
    alone = None if verdict is None else verdict.alone
    for array in arrays:
        old = known.get((array if array._base is None else array._base)._ready)
        if old is not None and old is not alone:
            hold(known, parameters, arrays, verdict, payload, reached)
            return
    if alone is not None:
        held = known.get(payload)
        known[payload] = alone if held is None else held | alone
        if len(known) >= known.sweep_at:
            known.sweep(reached)


def hold(
    known: Verdicts,
    parameters: Sequence[Parameter],
    values: Sequence[object],
    verdict: Verdict | None,
    payload: int,
    reached: int,
) -> None:
    """Holds the call of a payload against verdicts.

    Args:
        known: of the device.
        parameters, values: of the call.
        verdict: on the call's own dispatch, unless its shader reports nothing.
        payload: of the call.
        reached: a payload that the device is known to have reached.
    """
    found = _NO_VERDICTS if verdict is None else verdict.alone
    if known:
        for parameter, value in zip(parameters, values, strict=True):
            for one in value if type(value) is tuple else (value,):
                old = known.get(getattr(one, "ready", 0))
                if old is not None and not old <= found:
                    # What is only written may keep parts of what it was, until somebody was told.
                    found |= old if parameter.binding.readable else {each for each in old if not each.is_raised}
    known.hold(payload, found, reached)
