"""The extra that timing studies need, and the error if it is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ...status import UnavailableError

_LIBRARIES = frozenset(
    ("scipy", "simpleeval", "plotly", "jinja2", "pyarrow", "tabulate", "perfetto", "psutil", "pynvml")
)
_CLUSTER = frozenset(("dask", "distributed"))


@contextlib.contextmanager
def needs_study_extra() -> Iterator[None]:
    """Within it, a missing library of the extra is an error that says how to install it."""
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
