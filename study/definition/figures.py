"""Derived figures: expressions over axes, settings, other figures, and measurements.

A name in an expression is, in this order, an earlier figure, a measurement, a setting of the target's kind that is a
number, a text or a truth value, or an axis. A figure applies to a target if its kind has all names: a figure of
``batch`` applies to kernels and copies only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...status import InvalidArgumentError, shown
from .expression import Expression, UndefinedResultError
from .messages import located
from .sample import SEGMENTS
from .target_settings import Kind

MEASURED: Final = (*SEGMENTS, "device", "total", "time", "dispatches")
"""Names of measurements: seconds of a sample (``time`` is the headline), and its ``dispatches``."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and its expression."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a study, in order."""

    figures: tuple[Figure, ...]

    @classmethod
    def parse(cls, derived: Mapping[str, str]) -> Figures:
        """From expressions by name.

        Raises:
            InvalidArgumentError: a reserved name, or not an expression; the location is ``derived.`` and the name.
        """
        return _parse(tuple(derived.items()))

    def names_known(self, kinds: Iterable[Kind], axes: Iterable[str]) -> tuple[str, ...]:
        """The names that expressions can use in any of these kinds, with these axes and all figures."""
        settings = (name for kind in kinds for name in kind.names)
        figures = (figure.name for figure in self.figures if figure.name.isidentifier())
        return tuple(dict.fromkeys((*axes, *settings, *figures, *MEASURED)))

    def check_names(self, kinds: Iterable[Kind], axes: Iterable[str]) -> None:
        """Raises unless each name that a figure uses is known before it, in at least one of these kinds.

        Raises:
            InvalidArgumentError: an unknown name; the message lists the known ones.
        """
        kinds, axes = tuple(kinds), tuple(axes)
        for i, figure in enumerate(self.figures):
            with located(f"derived.{figure.name}"):
                if figure.name in axes:
                    raise InvalidArgumentError(f"an axis is named {shown(figure.name)}; give the figure another name")
                figure.expression.check_names(Figures(self.figures[:i]).names_known(kinds, axes))

    def of(self, kind: Kind, axes: Iterable[str]) -> tuple[Figure, ...]:
        """The figures that apply to targets of a kind."""
        known = {*MEASURED, *kind.names, *axes}
        found = []
        for figure in self.figures:
            if figure.expression.names <= known:
                found.append(figure)
                known.add(figure.name)
        return tuple(found)

    def axes_of(self, kind: Kind, axes: Iterable[str]) -> frozenset[str]:
        """The axes that applicable figures use by name, not through a setting."""
        axes = frozenset(axes)
        hidden = {*MEASURED, *kind.names}
        used: set[str] = set()
        for figure in self.of(kind, axes):
            used |= (figure.expression.names & axes) - hidden
            hidden.add(figure.name)
        return frozenset(used)

    def evaluate(
        self,
        kind: Kind,
        axes: Mapping[str, object],
        settings: Mapping[str, object],
        measured: Mapping[str, float] | None = None,
    ) -> dict[str, float]:
        """The applicable figures whose names all have values.

        Args:
            kind: of the target.
            axes: the point's.
            settings: the point's.
            measured: values of :data:`MEASURED`; ``None`` before measuring. A figure that is undefined for them, for
                example a division by a duration of 0, is NaN.

        Raises:
            InvalidArgumentError: a figure that is not a number, or uses a setting without a value; the location names
                the figure.
        """
        measured = dict(measured) if measured is not None else None
        scalars = {name: value for name, value in settings.items() if isinstance(value, (int, float, str))}
        known: dict[str, object] = {**axes, **scalars, **(measured or {})}
        # Figures that need a missing measurement are missing too.
        missing = set(MEASURED).difference(measured or ())
        figures: dict[str, float] = {}
        for figure in self.of(kind, axes):
            names = figure.expression.names
            if names & missing:
                missing.add(figure.name)
                continue
            with located(f"derived.{figure.name}"):
                for name in sorted(names.difference(known)):
                    raise InvalidArgumentError(
                        f"{name} is {shown(settings.get(name))} here; set it to a number, or remove the figure"
                    )
                value = _value(figure.expression, known, strict=measured is None)
            figures[figure.name] = known[figure.name] = value
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
def _parse(derived: tuple[tuple[str, str], ...]) -> Figures:
    figures = []
    for name, text in derived:
        with located(f"derived.{name}"):
            if not isinstance(name, str) or not name.strip():
                raise InvalidArgumentError(f"a figure has a name, got {shown(name)}")
            if name in MEASURED:
                raise InvalidArgumentError(f"{name} is a measurement; give the figure another name")
            if not isinstance(text, str):
                raise InvalidArgumentError(f'expected an expression such as "12 * n", got {shown(text)}')
            figures.append(Figure(name, Expression(text.removeprefix("$"))))
    return Figures(tuple(figures))
