"""Derived figures: expressions over axes, settings, other figures, and measurements.

A name in an expression is, in this order, an earlier figure, a measurement, a setting of the target's kind that is a
number, a text or a truth value, or an axis. A figure applies to a target if its kind has all names: a figure of
``batch`` applies only to kernels and copies.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Final

from ...status import InvalidArgumentError, shown
from .expression import Expression, UndefinedResultError
from .messages import located
from .sample import SEGMENTS
from .target_settings import Kind

MEASURED: Final = (*SEGMENTS, "device", "total", "time", "dispatches")
"""Names of measurements: seconds of a sample (``time`` is the headline), and its ``dispatches``."""


class Figures:
    """The figures of a study: an expression for each name, in order."""

    def __init__(self, figures: Mapping[str, Expression]) -> None:
        self._figures = figures

    def check_names(self, kinds: Iterable[Kind], axes: Iterable[str]) -> None:
        """Raises InvalidArgumentError unless each name that a figure uses is known before it in one of these kinds."""
        axes = tuple(axes)
        known = dict.fromkeys((*axes, *(name for kind in kinds for name in kind.names)))
        for figure, expression in self._figures.items():
            with located(f"derived.{figure}"):
                if figure in axes:
                    raise InvalidArgumentError(f"an axis is named {shown(figure)}; give the figure another name")
                expression.check_names(dict.fromkeys((*known, *MEASURED)))
            if figure.isidentifier():
                known[figure] = None

    def of(self, kind: Kind, axes: Iterable[str]) -> dict[str, Expression]:
        """Returns the figures that apply to targets of a kind."""
        known = {*MEASURED, *kind.names, *axes}
        applicable = {}
        for figure, expression in self._figures.items():
            if expression.names <= known:
                applicable[figure] = expression
                known.add(figure)
        return applicable

    def axes_of(self, kind: Kind, axes: Iterable[str]) -> set[str]:
        """Returns the axes that applicable figures use by name, not through a setting."""
        axes = frozenset(axes)
        hidden = {*MEASURED, *kind.names}
        used: set[str] = set()
        for figure, expression in self.of(kind, axes).items():
            used |= (expression.names & axes) - hidden
            hidden.add(figure)
        return used

    def evaluate(
        self,
        kind: Kind,
        axes: Mapping[str, object],
        settings: Mapping[str, object],
        measured: Mapping[str, float] | None = None,
    ) -> dict[str, float]:
        """Evaluates the applicable figures whose names all have values. With ``measured`` (see ``MEASURED``) a figure
        that is undefined, such as a division by a duration of 0, is NaN; without, it is an error, located at the
        figure.
        """
        scalars = {name: value for name, value in settings.items() if isinstance(value, (int, float, str))}
        known: dict[str, object] = {**axes, **scalars, **(measured or {})}
        # Figures that need a missing measurement are missing too.
        missing = set(MEASURED).difference(measured or ())
        figures: dict[str, float] = {}
        for figure, expression in self.of(kind, axes).items():
            if expression.names & missing:
                missing.add(figure)
                continue
            with located(f"derived.{figure}"):
                for name in sorted(expression.names.difference(known)):
                    raise InvalidArgumentError(
                        f"{name} is {shown(settings.get(name))} here; set it to a number, or remove the figure"
                    )
                figures[figure] = known[figure] = _value(expression, known, strict=measured is None)
        return figures


def _value(expression: Expression, known: Mapping[str, object], strict: bool) -> float:
    try:
        value = expression.evaluate(known)
        if not isinstance(value, str):
            return float(value)
    except (UndefinedResultError, OverflowError) as error:
        if not strict:
            return math.nan
        raise InvalidArgumentError(f"expected a number: {getattr(error, 'message', error)}") from None
    raise InvalidArgumentError(f"expected a number, got {shown(value)}")


@functools.lru_cache(maxsize=64)
def parse_figures(*derived: tuple[str, str]) -> Figures:
    """Parses figures, names with expressions; an error is located at ``derived.`` and the name."""
    figures = {}
    for name, text in derived:
        with located(f"derived.{name}"):
            if not isinstance(name, str) or not name.strip():
                raise InvalidArgumentError(f"a figure has a name, got {shown(name)}")
            if name in MEASURED:
                raise InvalidArgumentError(f"{name} is a measurement; give the figure another name")
            if not isinstance(text, str):
                raise InvalidArgumentError(f'expected an expression such as "12 * n", got {shown(text)}')
            figures[name] = Expression(text.removeprefix("$"))
    return Figures(figures)
