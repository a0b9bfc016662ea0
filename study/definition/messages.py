"""Parts of error messages about a study: the location, and close names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ...status import PumiceError, close_to


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefixes the location of errors that leave the block: with a part of a path, such as ``targets[0]`` or ``[1]``,
    or with a file and a colon, ``batch-depth.toml:``.
    """
    try:
        yield
    except PumiceError as error:
        inner = error.location or ""
        if where.endswith(":"):
            error.location = f"{where} {inner}" if inner else where[:-1]
        elif where:
            error.location = f"{where}.{inner}" if inner and not inner.startswith("[") else where + inner
        raise


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ``" (did you mean 'batch'?)"``, for the end of a clause; empty if no known name is close."""
    close = close_to(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
