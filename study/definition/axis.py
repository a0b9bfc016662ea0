"""Axes: named lists of the values that a study varies."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shorten, shown
from .point import AxisValue, is_number

_MAX_VALUES: Final = 100_000
"""The largest number of values; more would be a mistake, and exhaust memory."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTEGER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Axis:
    """A named list of values; or several names, whose values change together.

    >>> Axis("tx, ty", ((8, 8), (16, 4)))

    Attributes:
        name: an identifier: letters, digits and underscores. ``"device"`` varies the device. Several names are
            separated by commas.
        values: at least one value, all different (``1``, ``1.0`` and ``True`` are equal), in the order of measuring and
            showing; for several names a tuple with a value for each. NumPy's numbers become Python's.

    Raises:
        InvalidArgumentError: the name is not an identifier, or values are missing, equal, not finite or of other types.
    """

    name: str
    values: tuple[AxisValue | tuple[AxisValue, ...], ...]

    def __post_init__(self) -> None:
        names = self.names if isinstance(self.name, str) else ()
        if not names or any(not _NAME.fullmatch(name) or keyword.iskeyword(name) for name in names):
            raise InvalidArgumentError(
                "an axis has a name of letters, digits and underscores, such as batch, that expressions can use; "
                f"got {shown(self.name)}"
            )
        if "target" in names:
            raise InvalidArgumentError(
                "an axis cannot be named target, which is how 'compare' names the study's targets"
            )
        if len(names) > 1 and (len(set(names)) < len(names) or "device" in names):
            raise InvalidArgumentError(
                f"the names of an axis must differ, and none may be device; got {shown(self.name)}"
            )
        object.__setattr__(self, "name", ", ".join(names))
        values = tuple(self._checked(value) for value in self.values)
        if not values:
            raise InvalidArgumentError(f"axis {shown(self.name)} is empty; give it at least one value")
        if len(set(values)) != len(values):
            twice = next(value for i, value in enumerate(values) if value in values[:i])
            raise InvalidArgumentError(
                f"axis {shown(self.name)} has the value {shown(twice)} twice; its values are all different"
            )
        object.__setattr__(self, "values", values)

    def _checked(self, value: object) -> AxisValue | tuple[AxisValue, ...]:
        names = self.names
        if len(names) == 1:
            return _checked(value, self.name)
        if not isinstance(value, (list, tuple)) or len(value) != len(names):
            raise InvalidArgumentError(
                f"axis {shown(self.name)} has lists of {len(names)} for values, one each; got {shown(value)}"
            )
        return tuple(_checked(part, name) for part, name in zip(value, names, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the axis varies."""
        return tuple(name.strip() for name in self.name.split(","))

    @property
    def columns(self) -> Mapping[str, tuple[AxisValue, ...]]:
        """The values of each name, by position."""
        rows = [value if isinstance(value, tuple) else (value,) for value in self.values]
        return dict(zip(self.names, zip(*rows, strict=True), strict=True))

    @classmethod
    def range(cls, name: str, start: int | float, stop: int | float, step: int | float = 1) -> Axis:
        """Makes an axis from ``start`` in equal steps to ``stop``, inclusive if a step meets it; a negative step goes
        down.

        Raises:
            InvalidArgumentError: the range is empty, the step is 0, or there are more than 100,000 values.
        """
        for number in (start, stop, step):
            _number(number, name)
        if not step:
            raise InvalidArgumentError(f"axis {shown(name)}: the step of a range is not 0")
        if (stop - start) * math.copysign(1, step) < 0:
            raise InvalidArgumentError(
                f"axis {shown(name)}: the range from {shown(start)} to {shown(stop)} by {shown(step)} is empty"
            )
        if abs(stop - start) > abs(step) * _MAX_VALUES:
            raise InvalidArgumentError(
                f"axis {shown(name)} would have more than {_MAX_VALUES} values, the most there may be"
            )
        # Decimal: a step of 0.1 yields 0.3, not 0.30000000000000004, and the number of steps is exact.
        first, last, by = (Decimal(repr(number)) for number in (start, stop, step))
        count = int((last - first) // by) + 1
        kind = int if isinstance(start, int) and isinstance(step, int) else float
        return cls(name, tuple(kind(first + i * by) for i in range(count)))

    @classmethod
    def powers_of_two(cls, name: str, first: int, last: int) -> Axis:
        """Makes an axis of all powers of two from ``first`` to ``last``, inclusive.

        Raises:
            InvalidArgumentError: there is no power of two in the range, or an end is not an int of at least 1.
        """
        for end in (first, last):
            if isinstance(end, bool) or not isinstance(end, int) or not 1 <= end <= 2**63:
                raise InvalidArgumentError(
                    f"axis {shown(name)}: the ends of powers of two are ints from 1 to 2**63, got {shown(end)}"
                )
        values = tuple(1 << i for i in range(64) if first <= 1 << i <= last)
        if not values:
            raise InvalidArgumentError(f"axis {shown(name)} is empty: there is no power of two from {first} to {last}")
        return cls(name, values)

    @classmethod
    def logspace(cls, name: str, first: int | float, last: int | float, count: int) -> Axis:
        """Makes an axis of ``count`` values in equal ratios from ``first`` to ``last``, inclusive.

        If both ends are ints the values are rounded to ints, without repeats.

        Raises:
            InvalidArgumentError: an end is not above 0, or there are fewer than 2 or more than 100,000 values.
        """
        for end in (first, last):
            if _number(end, name) <= 0:
                raise InvalidArgumentError(
                    f"axis {shown(name)}: the ends of a logspace are numbers above 0, got {shown(end)}"
                )
        if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= _MAX_VALUES:
            raise InvalidArgumentError(
                f"axis {shown(name)}: a logspace has a count from 2 to {_MAX_VALUES}, got {shown(count)}"
            )
        start, stop = float(first), float(last)
        with np.errstate(over="ignore"):  # an end near the largest float may round up past it
            values: list[float] = np.clip(np.geomspace(start, stop, count), min(start, stop), max(start, stop)).tolist()
        values[0], values[-1] = start, stop
        if isinstance(first, int) and isinstance(last, int):
            whole = [first, *(round(value) for value in values[1:-1]), last]
            return cls(name, tuple(dict.fromkeys(whole)))
        return cls(name, tuple(dict.fromkeys(values)))

    @property
    def is_numeric(self) -> bool:
        """Whether all values are numbers, not truth values."""
        return all(map(is_number, self.values))


# The accepted counts of numbers for each form of a table, and its notation.
_FORMS: Final[Mapping[str, tuple[tuple[int, ...], str]]] = {
    "range": ((2, 3), "[start, stop] or [start, stop, step]"),
    "powers_of_two": ((2,), "[first, last]"),
    "logspace": ((3,), "[first, last, count]"),
}


def read_axis(name: str, value: object) -> Axis:
    """Reads an axis of a study file: a list of values, a list of lists for several names, or a table with ``range``,
    ``powers_of_two`` or ``logspace``.
    """
    forms = f"a list of values, or one of {', '.join(f'{{ {form} = {text} }}' for form, (_, text) in _FORMS.items())}"
    if isinstance(value, (list, tuple)):
        return Axis(name, tuple(value))
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in _FORMS:
        raise InvalidArgumentError(f"axis {shown(name)}: expected {forms}; got {shown(value)}")
    ((form, ends),) = value.items()
    counts, text = _FORMS[form]
    if not isinstance(ends, (list, tuple)) or len(ends) not in counts:
        raise InvalidArgumentError(f"axis {shown(name)}: {form} takes {text}, got {shown(ends)}")
    numbers = [_number(end, name) for end in ends]
    make: Callable[..., Axis] = getattr(Axis, form)
    return make(name, *numbers)


def parse_axis(text: str) -> Axis:
    """Parses an axis of a command line: ``n=1,2,4`` (values), ``n=1:64`` or ``n=1:64:9`` (a range: start, stop, step),
    ``n=pow2:1:256``, ``n=log:1024:1048576:6``, or ``tx,ty=8:8,16:4`` (names that change together). Values are
    numbers, ``true``, ``false`` and texts; double quotes make any value a text.
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not values:
        raise InvalidArgumentError(
            f"expected an axis such as n=1,2,4 or n=1:64:9 or n=pow2:1:256 or n=log:1024:1048576:6, got {shown(text)}"
        )
    if "," in name:
        rows = [part.split(":") for part in values.split(",")]
        return Axis(name, tuple(tuple(_parse_value(text_part.strip()) for text_part in row) for row in rows))
    head, *rest = values.split(":")
    form = {"pow2": "powers_of_two", "log": "logspace"}.get(head)
    if form is None and rest and all(_NUMBER.fullmatch(part) or _INTEGER.fullmatch(part) for part in (head, *rest)):
        form, rest = "range", [head, *rest]
    if form is not None:
        return read_axis(name, {form: [_parse_value(part) for part in rest]})
    return Axis(name, tuple(_parse_value(part.strip()) for part in values.split(",")))


def _parse_value(text: str) -> AxisValue:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        try:
            return int(text, 16 if "x" in text.lower() else 10)
        except ValueError:  # more digits than Python converts
            raise InvalidArgumentError(f"expected ints of 64 bits, got {shorten(text)}") from None
    return float(text) if _NUMBER.fullmatch(text) else text


def _checked(value: object, name: str) -> AxisValue:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float, str)):
        raise InvalidArgumentError(
            f"axis {shown(name)} has numbers, texts and truth values for values, got {shown(value)}"
        )
    if not isinstance(value, str) and not _is_in_range(value):
        raise InvalidArgumentError(
            f"axis {shown(name)} has finite numbers for values (ints have 64 bits), got {shown(value)}"
        )
    return value


def _number(value: object, name: str) -> int | float:
    if not is_number(value) or not _is_in_range(value):
        raise InvalidArgumentError(
            f"axis {shown(name)}: expected a finite number (ints have 64 bits), got {shown(value)}"
        )
    return value


def _is_in_range(value: int | float) -> bool:
    return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**64
