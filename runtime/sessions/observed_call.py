"""Calls whose times a profile records, from the binding of arguments to the conversion of results."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ...vm.execution.context import Function
from ..profiling.call import CallRecord, now

if TYPE_CHECKING:
    from ..profiling.profile import Profile


def observed_async(
    observer: Profile,
    function: Function,
    bind: Callable[[], tuple[Any, ...]],
    invoke: Callable[[tuple[Any, ...], CallRecord], Any],
    convert: Callable[[Any], Any],
) -> Any:
    """A call of an asynchronous function that is waited for; ``invoke`` notes its steps."""
    record = observer.new_call(function, is_async=False)
    try:
        values = bind()
        record.bind_end = now()
        result = convert(invoke(values, record))
    except BaseException as error:
        record.ended(error)
        raise
    record.ended(None)
    return result


def observed_sync(
    observer: Profile,
    function: Function,
    bind: Callable[[], tuple[Any, ...]],
    invoke: Callable[[tuple[Any, ...]], Any],
    convert: Callable[[Any], Any],
) -> Any:
    """A call of a synchronous function."""
    phase, bound, invoked, error_name = observer.phase, 0, 0, ""
    begin = now()
    try:
        values = bind()
        bound = now()
        try:
            result = invoke(values)
        finally:
            invoked = now()
        return convert(result)
    except BaseException as error:
        error_name = type(error).__name__
        raise
    finally:
        observer.call_ended((function, phase, get_ident(), begin, bound, invoked, now(), error_name))
