"""The bytes and the text in VM buffers that programs pass to the exports of the ``hal`` module."""

from __future__ import annotations

from ....hal.programs.checks import Ref, got
from ....status import InvalidArgumentError


def memory_of(buffer: Ref, subject: str) -> memoryview:
    """Returns the bytes of a VM buffer, in place."""
    try:
        view: memoryview = buffer.as_memoryview()
    except AttributeError:
        raise InvalidArgumentError(f"{subject}: expected a !vm.buffer, got {got(buffer)}") from None
    return view


def text_of(buffer: Ref, subject: str) -> str:
    """Returns the text in a VM buffer."""
    return memory_of(buffer, subject).tobytes().decode("utf-8", "replace")
