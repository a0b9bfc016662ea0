"""Deprecated names: a decorator that makes their calls warn."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def deprecated(*, since: str, removed: str, instead: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Returns a decorator for a public function or method that will be removed.

    A call warns with ``DeprecationWarning`` at the line of the caller. The docstring gets the same sentence, and
    ``__deprecated__`` contains it for type checkers and editors (PEP 702).

    Args:
        since: the version that deprecates the name, such as ``"0.3"``.
        removed: the version that removes it.
        instead: the replacement to call, as code.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        message = f"{function.__qualname__} is deprecated since pumice {since} and goes in {removed}: use {instead}"

        @functools.wraps(function)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        wrapper.__doc__ = f"{function.__doc__ or ''}\n\nDeprecated: {message}.".lstrip()
        wrapper.__deprecated__ = message  # type: ignore[attr-defined]
        return wrapper

    return decorate
