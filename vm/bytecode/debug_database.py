"""Source locations of a module's bytecode: the line of each instruction in the compiled program.

Locations nest (a call site has two, a fused one any number) and refer to each other by index into one table. Files may
be damaged, so a chain of locations may be a cycle; therefore walks are bounded.

The fields are those of IREE's runtime/src/iree/schemas/bytecode_module_def.fbs, release 3.13. Its compilers, at least
up to that release, often write only one function's table. Tables are therefore matched by name, and by ordinal only if
every function has a table.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import ClassVar, Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError

_PAIR: Final = struct.Struct("<ii")
_MAX_PARTS: Final = 32
_MAX_DEPTH: Final = 16
_MAX_NAME: Final = 512


@dataclass(frozen=True, slots=True)
class FileLineCol:
    """A position in a text file; line and column count from 1, 0 means unknown."""

    filename: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class CallSite:
    """Code inlined from ``callee`` into ``caller``, both indices into the locations."""

    callee: int
    caller: int


@dataclass(frozen=True, slots=True)
class FusedLocation:
    """Code from several places, as indices into the locations; ``metadata`` is the compiler's own, or ``None``."""

    metadata: str | None
    locations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NamedLocation:
    """A name for another location, an index into the locations."""

    name: str
    child: int


Location: TypeAlias = FileLineCol | CallSite | FusedLocation | NamedLocation | None
"""A location; ``None`` is unknown."""


@dataclass(frozen=True)
class FunctionSourceMap:
    """The locations of one function's instructions."""

    local_name: str  # inside its module, which may differ from the name it is exported by
    # 8 bytes per entry: pc from the function's start and index into the locations, both little-endian int32.
    table: memoryview | bytes

    def entries(self) -> tuple[tuple[int, int], ...]:
        """Returns the table as (pc, location) pairs, in the file's order."""
        return tuple((pc, location) for pc, location in _PAIR.iter_unpack(self.table))

    @staticmethod
    def of(local_name: str, entries: Sequence[tuple[int, int]]) -> FunctionSourceMap:
        """Returns a source map of (pc, location) pairs."""
        return FunctionSourceMap(local_name, b"".join(_PAIR.pack(*entry) for entry in entries))

    def location_at(self, pc: int) -> int | None:
        """Returns the location of the last entry at or before ``pc``."""
        index = bisect_right(self._by_pc, pc, key=itemgetter(0))
        return self._by_pc[index - 1][1] if index else None

    @cached_property
    def _by_pc(self) -> list[tuple[int, int]]:
        return sorted(self.entries(), key=itemgetter(0))


_Content: TypeAlias = tuple[tuple[FunctionSourceMap, ...], tuple[Location, ...]]


class DebugDatabase:
    """All locations of a module.

    Immutable; decoded at the first access, so that a damaged database does not prevent loading.

    Thread rule: any thread; two threads may both decode, to equal values.
    """

    def __init__(
        self, functions: Sequence[FunctionSourceMap], function_count: int, locations: Sequence[Location]
    ) -> None:
        self.function_count: Final = function_count  # of the module
        self._read: Callable[[], _Content] = lambda: (tuple(functions), tuple(locations))

    @staticmethod
    def deferred(function_count: int, read: Callable[[], _Content]) -> DebugDatabase:
        """Returns a database whose source maps and locations come from ``read()`` at their first access.

        ``read`` may raise InvalidArgumentError, may be called from any thread, and more than once.
        """
        database = DebugDatabase((), function_count, ())
        database._read = read
        return database

    @cached_property
    def _content(self) -> _Content:
        return self._read()

    @property
    def functions(self) -> tuple[FunctionSourceMap, ...]:
        """Source maps, in the file's order; InvalidArgumentError if the file is damaged there."""
        return self._content[0]

    @property
    def locations(self) -> tuple[Location, ...]:
        """The locations that source maps and nested locations refer to by index.

        Raises InvalidArgumentError for a damaged file.
        """
        return self._content[1]

    @cached_property
    def _maps(self) -> dict[str | int, FunctionSourceMap]:
        """Source maps by name and, if the file has a map for each function, by ordinal."""
        maps: dict[str | int, FunctionSourceMap] = {
            function.local_name: function for function in reversed(self.functions)
        }
        maps.pop("", None)
        if len(self.functions) == self.function_count:
            maps.update(enumerate(self.functions))
        return maps

    def location_of(self, function: str | int, pc: int) -> str | None:
        """Returns the source of the instruction at ``pc``: ``"model.mlir:12:7"``; ``None`` if it is not known.

        The function is given by its name, local or exported, or by its ordinal. An entry applies up to the next. A
        damaged table also gives ``None``, as this is called while an error is reported.
        """
        try:
            source_map = self._maps.get(function)
        except InvalidArgumentError:
            return None
        location = None if source_map is None else source_map.location_at(pc)
        return None if location is None else self.describe(location)

    def describe(self, location: int) -> str | None:
        """Returns the text of a location by its index: ``a.mlir:1:2``, ``callee at caller``, ``[a, b]``, ``name
        (a.mlir:1:2)``.

        Nested locations are shown to a depth of 16, at most 32 of them; ``None`` if the location is unknown.
        """
        try:
            return _describe(self.locations, location, _MAX_DEPTH, [_MAX_PARTS])
        except InvalidArgumentError:
            return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DebugDatabase):
            return NotImplemented
        return self.function_count == other.function_count and self._content == other._content

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


def _describe(locations: Sequence[Location], index: int, depth: int, budget: list[int]) -> str | None:
    if depth == 0 or budget[0] == 0 or not 0 <= index < len(locations):
        return None
    budget[0] -= 1
    location = locations[index]
    if isinstance(location, FileLineCol):
        return f"{_shorten(location.filename)}:{location.line}:{location.column}"
    if isinstance(location, NamedLocation):
        child = _describe(locations, location.child, depth - 1, budget)
        name = _shorten(location.name)
        return name if child is None else f"{name} ({child})"
    if isinstance(location, CallSite):
        callee = _describe(locations, location.callee, depth - 1, budget)
        caller = _describe(locations, location.caller, depth - 1, budget)
        return callee if caller is None else caller if callee is None else f"{callee} at {caller}"
    if isinstance(location, FusedLocation):
        parts: dict[str, None] = {}
        for child_index in location.locations:
            if budget[0] == 0:
                parts["…"] = None
                break
            child = _describe(locations, child_index, depth - 1, budget)
            if child is not None:
                parts[child] = None
        return None if not parts else next(iter(parts)) if len(parts) == 1 else f"[{', '.join(parts)}]"
    return None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_NAME else f"…{text[1 - _MAX_NAME :]}"
