"""Where in a study something is wrong: the file, and the path of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...status import PumiceError

__all__ = ["located"]


@contextmanager
def located(where: str) -> Iterator[None]:
    """Puts ``where`` in front of the location of errors that leave the block.

    Args:
        where: a part of a path, such as ``targets[0]`` or ``[1]``, or a file's name with a colon behind:
            ``batch-depth.toml:``.
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
