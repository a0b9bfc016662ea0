"""Deferred dataclasses behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pumice.base import lazy_dataclass as records

OPTIONS = [
    dict(zip(("frozen", "slots", "eq", "kw_only", "repr"), values, strict=True))
    for values in itertools.product((False, True), repeat=5)
]
Decorator = Callable[..., Any]


def family(decorator: Decorator, **options: bool) -> tuple[type[Any], type[Any]]:
    """A class with every kind of field, and one that inherits from it."""

    @decorator(**options)
    class Point:
        """A point."""

        x: int
        y: float
        origin: ClassVar[int] = 0
        tags: list[str] = dataclasses.field(default_factory=list)
        name: str = "p"
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)
        fixed: int = dataclasses.field(default=4, init=False)

        def __post_init__(self) -> None:
            if self.x == -1:
                raise ValueError("negative")

    @decorator(**options)
    class Named(Point):
        name: str = "n"
        size: tuple[int, ...] = ()

    return Point, Named


def said(action: Callable[[], object]) -> object:
    """What an action gives: its result, or its error."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_are_those_of_the_standard_library(options: dict[str, bool]) -> None:
    def behaviour(kind: type[Any]) -> list[object]:
        def made(*arguments: object, **named: object) -> object:
            return kind(*arguments, **named)

        if options["kw_only"]:
            one, same, other = made(x=1, y=2.0, name="a"), made(x=1, y=2.0, name="a", hidden=9), made(x=2, y=0.0)
        else:
            one, same, other = made(1, 2.0, name="a"), made(1, 2.0, name="a", hidden=9), made(2, 0.0)
        looked = [
            one == same,
            one == other,
            one != same,
            one == (1, 2.0),
            said(lambda: hash(one) == hash(same)),
            said(lambda: kind.__hash__ is None),
            repr(one) if options["repr"] else None,
            dataclasses.asdict(one),  # type: ignore[call-overload]
            dataclasses.asdict(dataclasses.replace(one, x=7)),  # type: ignore[type-var]
            [field.name for field in dataclasses.fields(kind)],
            said(lambda: setattr(one, "x", 5)),
            said(lambda: setattr(one, "fixed", 5)),
            said(lambda: delattr(one, "y")),
            said(lambda: made(x=-1, y=0.0)),
            said(lambda: made(x=1)),
            said(lambda: made(x=1, y=0.0, unknown=2)),
            said(lambda: made(1, 2.0, [], "a", 3, (), 8, 9)),
            dataclasses.asdict(copy.copy(other)),
            dataclasses.asdict(copy.deepcopy(other)),
            getattr(kind, "__match_args__", None),
            hasattr(one, "__dict__"),
            one.tags is not other.tags,  # type: ignore[attr-defined]
        ]
        return [str(each).replace("0x", "") for each in looked]

    for deferred, standard in zip(
        family(records.dataclass, **options), family(dataclasses.dataclass, **options), strict=True
    ):
        assert behaviour(deferred) == behaviour(standard)
        assert behaviour(deferred) == behaviour(standard), "also when the methods are written"


@records.dataclass(frozen=True, slots=True)
class Pickled:
    """Module level, as pickle wants it."""

    a: int
    b: tuple[int, ...] = ()


def test_frozen_ones_with_slots_are_pickled() -> None:
    one = Pickled(1, (2, 3))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one, protocol)) == one


def test_methods_that_a_class_has_stay() -> None:
    @records.dataclass(frozen=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert repr(Own(1)) == "own" and Own(1) == Own(2) and hash(Own(3)) == 7


def test_methods_are_written_when_they_are_called() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Late:
        a: int

    first = Late.__init__
    Late(1)
    assert Late.__init__ is not first and Late.__init__.__qualname__ == first.__qualname__
    first(Late(2), 2)  # what holds the first one goes on
