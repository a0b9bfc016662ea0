"""Objects that release what they own at the end of a ``with`` block."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closeable:
    """A context manager that closes itself."""

    __slots__ = ()

    def close(self) -> None:
        """Releases what the object owns; idempotent."""
        raise NotImplementedError(f"{type(self).__name__} has no close()")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
