"""Calls native functions: checks their results against the calling convention, and drives their coroutines.

A native function may be a coroutine: ``async def``, with ``await`` for each wait::

    @module.function("read", "0i_i")
    async def read(descriptor: int) -> int:
        await FileReady(descriptor)
        return os.read(descriptor, 1)[0]

Each ``await`` of a wait source suspends the invocation, like a returned ``Wait``. On resumption the coroutine continues
after it, or the source's failure is raised there. The coroutine of an aborted invocation is closed: its ``finally``
blocks run.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any

from ...status import FailedPreconditionError, InvalidArgumentError, PumiceError
from ...waits.awaitable import driving
from ...waits.wait_frame import Wait
from ..bytecode.calling_convention import CallingConvention
from ..types.numerics import round_f32, wrap32, wrap64


def checked_native(
    function: Callable[..., Any], name: str, convention: CallingConvention, *, may_wait: bool = True
) -> Callable[..., Any]:
    """Returns a wrapper of ``function`` that checks its results, also after waits.

    Integer results may be unsigned; they become the signed value with the same bits.
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
            # A new object, as the author may return the same object again.
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


def driven(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Wraps a coroutine function so that its coroutines are run; their results are not checked."""

    def call(*arguments: Any) -> Any:
        return advance(function(*arguments), lambda result: result)

    return call


def advance(coroutine: Coroutine[Any, Any, Any], finish: Callable[[Any], Any], error: PumiceError | None = None) -> Any:
    """Runs a coroutine to its next ``await`` and returns a Wait, or to its end and returns the value of ``finish``.

    An ``error`` is raised at the coroutine's current ``await``.
    """
    driving.depth += 1
    try:
        source = coroutine.send(None) if error is None else coroutine.throw(error)
    except StopIteration as end:
        result = end.value
    else:
        return _wait(coroutine, finish, source)
    finally:
        driving.depth -= 1
    return finish(result)


def _wait(coroutine: Coroutine[Any, Any, Any], finish: Callable[[Any], Any], source: Any) -> Wait:
    def resume(error: PumiceError | None) -> object:
        return advance(coroutine, finish, error)

    if isinstance(source, Wait):  # an awaitable that yields Waits itself
        return Wait(source.sources, any=source.any, deadline=source.deadline, resume=resume)
    if source is None or getattr(source, "_asyncio_future_blocking", None) is not None:
        # asyncio.sleep(0) or an asyncio future, which cannot be awaited outside of asyncio's tasks.
        coroutine.close()
        raise FailedPreconditionError(
            "a native coroutine awaited something of asyncio's; await pumice.AsyncioSource(task), or another wait "
            "source"
        )
    return Wait((source,), resume=resume)
