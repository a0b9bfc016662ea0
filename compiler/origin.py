"""The properties of a program that its file does not contain; the cache of modules imports no more of the compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The properties of a program that its file does not contain.

    Attributes:
        stage: the program's stage, of ``STAGES``; None if its content tells.
        feeds: the arguments of a GraphDef, as for ``import_graph``.
        fetches: the results of a GraphDef.
    """

    stage: str | None = None
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
