"""Checks the results of native functions against their calling convention."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from ...status import FailedPreconditionError, InvalidArgumentError
from ..bytecode.calling_convention import CallingConvention
from ..translation.numerics import round_f32, wrap32, wrap64
from ..wait.frame import Wait
from .coroutine import advance


def checked_native(
    function: Callable[..., Any], name: str, convention: CallingConvention, *, may_wait: bool = True
) -> Callable[..., Any]:
    """A function that calls ``function`` and checks its results, also after waits.

    Integer results may be given unsigned; they become the signed value of the same bits.
    """
    results = convention.results

    def check(answer: Any) -> Any:
        if type(answer) is CoroutineType:
            if not may_wait:
                answer.close()
                raise FailedPreconditionError(f"{name} is a coroutine, but is called where nothing can wait")
            return advance(answer, check)
        if isinstance(answer, Wait):
            if not may_wait:
                raise FailedPreconditionError(f"{name} returned a Wait, but is called where nothing can wait")
            inner = answer.resume
            # A new one, as the author may return the same object again.
            return Wait(
                answer.sources, any=answer.any, deadline=answer.deadline, resume=lambda error: check(inner(error))
            )
        if not results:
            if answer is not None:
                raise InvalidArgumentError(
                    f"{name} has no results by its convention {convention.text!r}, but returned {type(answer).__name__}"
                )
            return None
        if len(results) == 1:
            return _checked(answer, results[0], name, convention)
        if not isinstance(answer, tuple) or len(answer) != len(results):
            raise InvalidArgumentError(
                f"{name} returns a tuple of {len(results)} by its convention {convention.text!r}, got "
                + (f"{len(answer)}" if isinstance(answer, tuple) else type(answer).__name__)
            )
        return tuple([_checked(value, kind, name, convention) for value, kind in zip(answer, results, strict=True)])

    def call(*arguments: Any) -> Any:
        return check(function(*arguments))

    return call


def _checked(value: Any, kind: str, name: str, convention: CallingConvention) -> Any:
    if kind == "r":
        return value
    if kind in "iI":
        try:
            number = value.__index__()
        except (AttributeError, TypeError):  # NumPy's floats raise TypeError
            pass
        else:
            bits = 32 if kind == "i" else 64
            if not -(1 << (bits - 1)) <= number < 1 << bits:
                raise InvalidArgumentError(
                    f"{name} returned {number}, which does not fit i{bits} (convention {convention.text})"
                )
            return wrap32(number) if kind == "i" else wrap64(number)
    elif isinstance(value, (int, float)) or hasattr(value, "__float__"):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            pass
        else:
            return round_f32(number) if kind == "f" else number
    raise InvalidArgumentError(
        f"{name} returned {type(value).__name__} where its convention {convention.text} says {kind}"
    )
