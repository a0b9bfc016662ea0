"""Source locations of a module's bytecode: the line of the compiled program of each instruction.

Locations nest (a call site has two, a fused one any number) and refer to each other by index into one table. Files may
be damaged, so a chain of them may be a cycle: text is made with a bounded walk.

The fields are those of IREE's runtime/src/iree/schemas/bytecode_module_def.fbs, release 3.13. Its compilers, up to that
release at least, often write one function's table only; tables are therefore matched by name, and by ordinal only where
there are as many of them as functions.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...status import InvalidArgumentError

_PAIR: Final = struct.Struct("<ii")
_MAX_PARTS: Final = 32
_MAX_DEPTH: Final = 16
_MAX_NAME: Final = 512


@dataclass(frozen=True, slots=True)
class FileLineCol:
    """A place in a text file; line and column count from 1, 0 is unknown."""

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
"""One location; ``None`` is an unknown one."""


@dataclass(frozen=True, slots=True)
class FunctionSourceMap:
    """The locations of one function's instructions.

    Attributes:
        local_name: the function's name inside its module, which may differ from the name it is exported by.
        table: 8 bytes an entry: pc from the function's start and index into the locations, both little-endian int32.
    """

    local_name: str
    table: memoryview | bytes

    def entries(self) -> tuple[tuple[int, int], ...]:
        """The table as (pc, location) pairs, in the file's order."""
        return tuple((pc, location) for pc, location in _PAIR.iter_unpack(self.table))

    @staticmethod
    def of(local_name: str, entries: Sequence[tuple[int, int]]) -> FunctionSourceMap:
        """A source map of (pc, location) pairs."""
        return FunctionSourceMap(local_name, b"".join(_PAIR.pack(*entry) for entry in entries))


_Content: TypeAlias = tuple[tuple[FunctionSourceMap, ...], tuple[Location, ...]]


class DebugDatabase:
    """All locations of a module. Immutable; decoded when first asked for, so that a damaged one does not prevent
    loading.

    Thread rule: any thread; two may both decode, to equal values.

    Args:
        functions: source maps, in the file's order.
        function_count: number of functions of the module.
        locations: that source maps and nested locations refer to by index.
    """

    __slots__ = ("_content", "_index", "_read", "function_count")

    def __init__(
        self, functions: Sequence[FunctionSourceMap], function_count: int, locations: Sequence[Location]
    ) -> None:
        self.function_count: Final = function_count
        self._read: Callable[[], _Content] | None = None
        self._content: _Content | None = (tuple(functions), tuple(locations))
        self._index: _Index | None = None

    @staticmethod
    def deferred(function_count: int, read: Callable[[], _Content]) -> DebugDatabase:
        """A database whose source maps and locations ``read()`` returns when they are first asked for.

        ``read`` may raise InvalidArgumentError, may be called from any thread, and more than once.
        """
        database = DebugDatabase((), function_count, ())
        database._content, database._read = None, read
        return database

    @property
    def functions(self) -> tuple[FunctionSourceMap, ...]:
        """Source maps, in the file's order.

        Raises:
            InvalidArgumentError: the file is damaged there.
        """
        return self._decoded()[0]

    @property
    def locations(self) -> tuple[Location, ...]:
        """The locations that source maps and nested locations refer to by index.

        Raises:
            InvalidArgumentError: the file is damaged there.
        """
        return self._decoded()[1]

    def location_of(self, function: str | int, pc: int) -> str | None:
        """The source of the instruction at ``pc``: ``"model.mlir:12:7"``; ``None`` if it is not known.

        An entry holds until the next one. A damaged table gives ``None`` too: this is called while an error is
        reported.

        Args:
            function: the function's name, local or exported, or its ordinal.
            pc: bytes from the function's start.
        """
        try:
            if self._index is None:
                self._index = _Index(self.functions, self.function_count)
            location = self._index.find(function, pc)
        except InvalidArgumentError:
            return None
        return None if location is None else self.describe(location)

    def describe(self, location: int) -> str | None:
        """The text of a location by its index: ``a.mlir:1:2``, ``callee at caller``, ``[a, b]``, ``name (a.mlir:1:2)``.

        Nested locations are shown to a depth of 16 and a number of 32; ``None`` where nothing is known.
        """
        try:
            return _describe(self.locations, location, _MAX_DEPTH, [_MAX_PARTS])
        except InvalidArgumentError:
            return None

    def _decoded(self) -> _Content:
        if self._content is None:
            assert self._read is not None
            self._content = self._read()
        return self._content

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DebugDatabase):
            return NotImplemented
        return self.function_count == other.function_count and self._decoded() == other._decoded()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        known = "" if self._content is None else f" {len(self._content[0])} source map(s) for"
        return f"<DebugDatabase of{known} {self.function_count} function(s)>"


class _Index:
    """Source maps by name and, where the file has one a function, by ordinal; tables are sorted when asked for."""

    __slots__ = ("_by_name", "_by_ordinal", "_tables")

    def __init__(self, functions: tuple[FunctionSourceMap, ...], function_count: int) -> None:
        self._by_name: Final = {entry.local_name: entry for entry in reversed(functions) if entry.local_name}
        self._by_ordinal: Final = functions if len(functions) == function_count else ()
        self._tables: Final[dict[int, tuple[tuple[int, int], ...]]] = {}

    def find(self, function: str | int, pc: int) -> int | None:
        """The location of the last entry at or before ``pc``."""
        if isinstance(function, str):
            entry = self._by_name.get(function)
        else:
            entry = self._by_ordinal[function] if 0 <= function < len(self._by_ordinal) else None
        if entry is None:
            return None
        table = self._tables.get(id(entry))
        if table is None:
            table = self._tables[id(entry)] = tuple(sorted(entry.entries(), key=_pc_of))
        index = bisect_right(table, pc, key=_pc_of)
        return table[index - 1][1] if index else None


def _pc_of(entry: tuple[int, int]) -> int:
    return entry[0]


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
