"""The decorator of deprecated names."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.base.deprecation import deprecated


@deprecated(since="0.3", removed="0.5", instead="`new(x)`")
def old(x: int) -> int:
    """Doubles a number."""
    return 2 * x


class Thing:
    @deprecated(since="0.3", removed="0.5", instead="`Thing.new()`")
    def old(self) -> str:
        return "old"


def test_a_call_warns_at_the_callers_line_and_works() -> None:
    with pytest.warns(DeprecationWarning, match=r"old is deprecated since pumice 0\.3 .* use `new\(x\)`") as caught:
        assert old(3) == 6
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]
    with pytest.warns(DeprecationWarning, match=r"Thing\.old is deprecated"):
        assert Thing().old() == "old"


def test_the_docstring_and_type_checkers_are_told() -> None:
    assert old.__doc__ is not None
    assert old.__doc__.startswith("Doubles a number.\n\nDeprecated: old is deprecated since pumice 0.3")
    assert "use `new(x)`" in old.__deprecated__  # type: ignore[attr-defined]
    assert old.__name__ == "old"
