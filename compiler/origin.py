"""The properties of a program outside its file; the module cache imports nothing else from the compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The properties of a program that its file does not contain.

    Attributes:
        stage: the program's stage, of ``STAGES``; None to infer it from the content.
        feeds: the arguments of a GraphDef, as for ``import_graph``.
        fetches: the results of a GraphDef.
    """

    stage: str | None = None
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
