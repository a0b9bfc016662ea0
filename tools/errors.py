"""Errors of the commands: wrong usage as click's error, and an error's text for people.

Imports nothing but click and the status codes, so that ``pumice --help`` stays fast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import click

from ..status import InvalidArgumentError, PumiceError, UnavailableError

_STUDY_LIBRARIES: Final = frozenset(
    ("scipy", "simpleeval", "plotly", "jinja2", "pyarrow", "tabulate", "perfetto", "psutil", "pynvml", "junitparser")
)
_CLUSTER_LIBRARIES: Final = frozenset(("dask", "distributed"))


class ExpectationError(Exception):
    """A result that differs from ``--expect``; the text has the differences."""


def usage_error(message: str) -> click.UsageError:
    """Returns the error of wrong usage: exit status 2, with a pointer to the command's help."""
    return click.UsageError(message, ctx=click.get_current_context(silent=True))


@contextlib.contextmanager
def usage(where: str = "", *also: type[PumiceError]) -> Iterator[None]:
    """Turns errors about an argument (and errors of the classes ``also``) into wrong usage.

    ``where`` begins the message.
    """
    try:
        yield
    except PumiceError as error:
        if not isinstance(error, (InvalidArgumentError, *also)):
            raise
        raise usage_error(f"{where}: {describe(error)}" if where else describe(error)) from error


def describe(error: PumiceError) -> str:
    """Returns an error's message with its location and VkResult. The exit status represents the status code."""
    text = f"{error.location}: {error.message}" if error.location else error.message
    if error.vk_result and error.vk_result not in text:
        text += f" [{error.vk_result}]"
    return text


@contextlib.contextmanager
def needs_study_extra() -> Iterator[None]:
    """Turns the lack of the extra's library into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in _STUDY_LIBRARIES | _CLUSTER_LIBRARIES:
            raise
        extra = "cluster" if name in _CLUSTER_LIBRARIES else "study"
        raise UnavailableError(
            f"timing studies need {name}, which is not installed: pip install 'pumice[{extra}]'"
        ) from error
