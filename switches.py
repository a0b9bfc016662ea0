"""Environment variables that turn something on or off, and what is said of those with a wrong value."""

from __future__ import annotations

import os
from typing import Final

from .status import InvalidArgumentError, shown

_ON: Final = ("1", "true", "on", "yes")
_OFF: Final = ("0", "false", "off", "no")


def switch(variable: str) -> bool | None:
    """What an environment variable says; ``None`` where it is unset or empty.

    Raises:
        InvalidArgumentError: it says neither on nor off.
    """
    value = os.environ.get(variable, "")
    word = value.strip().lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    if not value:
        return None
    raise wrong_value(variable, f"one of {', '.join(_ON)} to turn it on, or one of {', '.join(_OFF)}")


def wrong_value(variable: str, expected: str) -> InvalidArgumentError:
    """The error of an environment variable that says something else than what was expected."""
    value = shown(os.environ.get(variable, ""))
    return InvalidArgumentError(f"the environment variable {variable} is {value}; expected {expected}")
