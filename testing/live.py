"""Native objects that a test leaves behind: counted by kind, without what devices keep for later."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator, Mapping
from typing import Final

from ..base.lazy_dataclass import dataclass
from ..hal_vulkan import live_objects
from ..hal_vulkan.instance.process import open_devices
from ..status import InvalidArgumentError, PumiceError, close_to, shown

# What a device makes for its own use and keeps, and the process's instance.
_KEPT: Final = frozenset(
    (
        *("command pool", "descriptor pool", "descriptor set layout", "descriptor update template", "instance"),
        *("memory block", "pipeline cache", "pipeline layout", "query pool"),
    )
)
# What people call them.
_NAMES: Final[Mapping[str, str]] = {"allocation": "buffer"}
_KINDS: Final = (
    *("buffer", "buffer view", "device", "image", "image view"),
    *("pipeline", "sampler", "semaphore", "shader module"),
)
_ITEM: Final = re.compile(r"\s*([0-9]{1,9})\s+([a-z ]+?)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LiveLimit:
    """How many native objects of each kind may be left; none of the kinds that are not named."""

    counts: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> LiveLimit:
        """A limit from a text such as ``"2 buffers, 1 pipeline"``.

        Raises:
            InvalidArgumentError: not such a text, or no such kind; the message lists them.
        """
        counts: dict[str, int] = {}
        for item in text.split(","):
            match = _ITEM.fullmatch(item)
            if match is None:
                raise InvalidArgumentError(f"expected a limit such as '2 buffers, 1 pipeline', got {shown(text)}")
            count, name = int(match[1]), match[2]
            kind = name if name in _KINDS else name.removesuffix("s")
            if kind not in _KINDS:
                near = close_to(kind, _KINDS, 1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise InvalidArgumentError(
                    f"limit {shown(text)}: no kind {name!r}; {hint}there are {', '.join(_KINDS)}"
                )
            counts[kind] = counts.get(kind, 0) + count
        return cls(counts)

    def exceeded(self, before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
        """By kind, how many more objects there are than before and than allowed."""
        over = {kind: after[kind] - before.get(kind, 0) - self.counts.get(kind, 0) for kind in after}
        return {kind: count for kind, count in over.items() if count > 0}


NOTHING: Final = LiveLimit({})


def live_counts() -> dict[str, int]:
    """The process's native objects by kind, without those that are kept for good."""
    return {_NAMES.get(kind, kind): count for kind, count in live_objects().items() if kind not in _KEPT}


def settled_counts(known: Mapping[str, int]) -> dict[str, int]:
    """The counts without garbage and caches, both of which count as alive.

    Only where the counts are not the ``known`` ones are caches emptied, which takes a tenth of a millisecond, and after
    that garbage collected, which takes longer than most tests.
    """
    counts = live_counts()
    if counts != known:
        _trim()
        counts = live_counts()
    if counts != known:
        gc.collect()
        _trim()
        counts = live_counts()
    return counts


def _trim() -> None:
    for device in list(open_devices):
        if not (device.is_closed or device.abandoned or device.lost):
            with contextlib.suppress(PumiceError):  # such as of a device that is being lost, which is not asked here
                device.wait_idle()  # what was closed is freed when no work uses it
                device.retire()
                device.trim()


def left_text(left: Mapping[str, int]) -> str:
    """``"2 buffers, 1 pipeline"``."""
    return ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in left.items())


@contextlib.contextmanager
def nothing_left(limit: str | LiveLimit | None = None) -> Iterator[None]:
    """A block that must leave no native objects behind: no open array, kernel, session or device of its own.

    Args:
        limit: what may be left, such as ``"2 buffers"``.

    Raises:
        AssertionError: it has left some.
        InvalidArgumentError: not a limit.
    """
    allowed = NOTHING if limit is None else LiveLimit.parse(limit) if isinstance(limit, str) else limit
    before = settled_counts({})
    yield
    left = allowed.exceeded(before, settled_counts(before))
    assert not left, f"native objects left behind: {left_text(left)}"
