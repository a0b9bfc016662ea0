"""A set of objects that it does not keep alive, and that any thread may list while others add to it.

``weakref.WeakSet`` is for one thread: iterating raises ``RuntimeError`` if another thread adds an object meanwhile.

Thread rule: any thread; finalisers too.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")


class WeakRegistry(Generic[_T]):
    """The objects that were added and are alive, in the order in which they were added."""

    def __init__(self) -> None:
        self._objects: weakref.WeakValueDictionary[int, _T] = weakref.WeakValueDictionary()

    def add(self, item: _T) -> None:
        self._objects[id(item)] = item

    def discard(self, item: _T) -> None:
        """Removes an object; has no effect if it is not there."""
        self._objects.pop(id(item), None)

    def clear(self) -> None:
        self._objects.clear()

    def __iter__(self) -> Iterator[_T]:
        """Returns an iterator over the objects of this moment."""
        # One call in C copies the references. An object that has ended may have left its reference behind.
        return iter([item for reference in self._objects.valuerefs() if (item := reference()) is not None])
