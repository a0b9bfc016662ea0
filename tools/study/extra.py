"""The extra that timing studies need, and what is said where it is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...status import UnavailableError

__all__ = ["needs_study_extra"]

_LIBRARIES = frozenset(
    ("scipy", "simpleeval", "plotly", "jinja2", "pyarrow", "tabulate", "perfetto", "psutil", "pynvml")
)
_CLUSTER = frozenset(("dask", "distributed"))


@contextlib.contextmanager
def needs_study_extra() -> Iterator[None]:
    """Within it, a library of the extra that is not there is an error that says how to get it.

    Raises:
        UnavailableError: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in _LIBRARIES | _CLUSTER:
            raise
        extra = "cluster" if name in _CLUSTER else "study"
        raise UnavailableError(
            f"timing studies need {name}, which is not installed: pip install 'pumice[{extra}]'"
        ) from error
