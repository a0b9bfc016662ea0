"""Source locations: how they are found and told, and tables that are damaged."""

from __future__ import annotations

import threading

import pytest

from pumice.status import InvalidArgumentError
from pumice.vm.bytecode.debug_database import (
    CallSite,
    DebugDatabase,
    FileLineCol,
    FunctionSourceMap,
    FusedLocation,
    Location,
    NamedLocation,
)

A = FileLineCol("a.mlir", 1, 2)
B = FileLineCol("b.mlir", 3, 4)


def _describe(*locations: Location) -> str | None:
    return DebugDatabase([], 0, locations).describe(0)


@pytest.mark.parametrize(
    ("locations", "text"),
    [
        ((A,), "a.mlir:1:2"),
        ((None,), None),
        ((), None),
        ((CallSite(1, 2), A, B), "a.mlir:1:2 at b.mlir:3:4"),
        ((CallSite(1, 9), A), "a.mlir:1:2"),
        ((CallSite(-1, 1), A), "a.mlir:1:2"),
        ((CallSite(7, 8),), None),
        ((NamedLocation("layer", 1), A), "layer (a.mlir:1:2)"),
        ((NamedLocation("layer", 1), None), "layer"),
        ((FusedLocation(None, (1, 2)), A, B), "[a.mlir:1:2, b.mlir:3:4]"),
        ((FusedLocation("m", (1, 1)), A), "a.mlir:1:2"),
        ((FusedLocation(None, ()),), None),
        ((FusedLocation(None, (1, 2)), None, A), "a.mlir:1:2"),
    ],
)
def test_how_locations_are_told(locations: tuple[Location, ...], text: str | None) -> None:
    assert _describe(*locations) == text


@pytest.mark.parametrize(
    "location", [CallSite(0, 0), NamedLocation("n" * 10_000, 0), FusedLocation(None, (0,) * 100_000)]
)
def test_cycles_end(location: Location) -> None:
    assert len(_describe(location) or "") < 64 * 1024


def test_many_fused_places_are_cut() -> None:
    text = _describe(FusedLocation(None, tuple(range(1, 1000))), *(FileLineCol("x", i, 0) for i in range(1000)))
    assert text is not None and text.endswith(", …]") and text.count("x:") < 40


def test_an_entry_holds_until_the_next() -> None:
    # Out of order, as a damaged or foreign file may have them.
    database = DebugDatabase([FunctionSourceMap.of("f", [(20, 1), (8, 0)])], 1, [A, B])
    told = {pc: database.location_of("f", pc) for pc in (-1, 0, 7, 8, 19, 20, 1000)}
    assert told == {
        **dict.fromkeys((-1, 0, 7), None),
        **dict.fromkeys((8, 19), "a.mlir:1:2"),
        **dict.fromkeys((20, 1000), "b.mlir:3:4"),
    }
    assert database.functions[0].entries() == ((20, 1), (8, 0))


def test_tables_are_matched_by_name_and_by_ordinal_only_if_complete() -> None:
    maps = [FunctionSourceMap.of("f", [(0, 0)]), FunctionSourceMap.of("g", [(0, 1)])]
    complete = DebugDatabase(maps, 2, [A, B])
    assert [complete.location_of(function, 0) for function in (0, 1, 2, -1)] == ["a.mlir:1:2", "b.mlir:3:4", None, None]
    partial = DebugDatabase(maps[1:], 2, [A, B])
    assert partial.location_of("g", 0) == "b.mlir:3:4"
    assert [partial.location_of(function, 0) for function in ("f", "", 0, 1)] == [None] * 4
    unnamed = DebugDatabase([FunctionSourceMap.of("", [(0, 0)])], 2, [A])
    assert unnamed.location_of("", 0) is None


def test_deferred_content_is_read_once_asked_for() -> None:
    calls = []

    def read() -> tuple[tuple[FunctionSourceMap, ...], tuple[Location, ...]]:
        calls.append(threading.get_ident())
        return (FunctionSourceMap.of("f", [(0, 0)]),), (A,)

    database = DebugDatabase.deferred(1, read)
    assert not calls
    assert database.location_of("f", 0) == "a.mlir:1:2"
    assert database == DebugDatabase([FunctionSourceMap.of("f", [(0, 0)])], 1, [A])
    assert len(calls) == 1


def test_damage_is_told_only_to_who_asks_for_the_tables() -> None:
    def read() -> tuple[tuple[FunctionSourceMap, ...], tuple[Location, ...]]:
        raise InvalidArgumentError("damaged")

    database = DebugDatabase.deferred(1, read)
    assert database.location_of("f", 0) is None
    assert database.location_of(0, 0) is None
    assert database.describe(0) is None
    with pytest.raises(InvalidArgumentError, match="damaged"):
        _ = database.functions
