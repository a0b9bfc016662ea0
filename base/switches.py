"""Environment variables that are on or off, with errors and warnings for wrong values and misspelt names."""

from __future__ import annotations

import functools
import os
from typing import Final

from ..status import InvalidArgumentError, shorten, shown

#: Every environment variable that pumice reads; README's table of settings explains them.
SETTINGS: Final = frozenset(
    {
        "PUMICE_CACHE",
        "PUMICE_CACHE_DIR",
        "PUMICE_DEBUG",
        "PUMICE_DEVICE",
        "PUMICE_GLSLC",
        "PUMICE_HLSLC",
        "PUMICE_LOOP_GUARD",
        "PUMICE_MACHINE_CODE",
        "PUMICE_REPAIRS",
        "PUMICE_REQUIRE_SPIRV_VAL",
        "PUMICE_SANITIZE",
        "PUMICE_SLANGC",
        "PUMICE_SPIRV_TOOLS",
        "PUMICE_STAGING",
        "PUMICE_VALIDATION",
        "PUMICE_VULKAN_LIBRARY",
        "PUMICE_WAIT",
        "PUMICE_WGSLC",
    }
)

_PREFIX: Final = "PUMICE_"
# The similarity above which a name counts as misspelt: VALIDATE means VALIDATION, but TEST_CACHE is a user's own
# variable.
_ALIKE: Final = 0.7
_ON: Final = ("1", "true", "on", "yes")
_OFF: Final = ("0", "false", "off", "no")


def switch(variable: str) -> bool | None:
    """Returns whether an environment variable is on; ``None`` if it is unset or empty.

    Raises:
        InvalidArgumentError: the variable's value is neither on nor off.
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
    """Returns the error for an environment variable with an unexpected value."""
    value = shown(os.environ.get(variable, ""))
    return InvalidArgumentError(f"the environment variable {variable} is {value}; expected {expected}")


@functools.cache
def warn_of_misspelt() -> None:
    """Warns once about variables that pumice does not read but whose names resemble settings."""
    unread = [name for name in os.environ if name.upper().startswith(_PREFIX) and name not in SETTINGS]
    if not unread:
        return
    import difflib  # imported here, as the import takes longer than the check
    import logging

    rests = [name.removeprefix(_PREFIX) for name in sorted(SETTINGS)]
    for name in sorted(unread):
        near = difflib.get_close_matches(name.upper().removeprefix(_PREFIX), rests, 1, _ALIKE)
        if near:
            logging.getLogger(__name__).warning(
                "the environment variable %s is not read; did you mean %s%s?", shorten(name), _PREFIX, near[0]
            )
