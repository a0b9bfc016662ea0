"""Where a program comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file does not say of itself.

    Attributes:
        stage: that it is at, of ``STAGES``; None if its content tells.
        feeds: of a GraphDef, as ``import_graph`` has them.
        fetches: of a GraphDef.
    """

    stage: str | None = None
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
