"""Native objects that a test leaves behind, counted by kind, without objects that devices keep for reuse."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator, Mapping
from typing import Final

from ..base.lazy_dataclass import dataclass
from ..hal_vulkan import live_objects
from ..hal_vulkan.instance.process import finish_teardowns, open_devices
from ..status import InvalidArgumentError, PumiceError, close_to, shown

# Objects that a device makes and keeps for itself, and the process's instance.
_KEPT: Final = frozenset(
    (
        *("command pool", "descriptor pool", "descriptor set layout", "descriptor update template", "instance"),
        *("memory block", "pipeline cache", "pipeline layout", "query pool"),
    )
)
# The public names of kinds.
_NAMES: Final[Mapping[str, str]] = {"allocation": "buffer"}
_KINDS: Final = (
    *("buffer", "buffer view", "device", "image", "image view"),
    *("pipeline", "sampler", "semaphore", "shader module"),
)
_ITEM: Final = re.compile(r"\s*([0-9]{1,9})\s+([a-z ]+?)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class LiveLimit:
    """The number of native objects of each kind that may be left; zero for kinds not named."""

    counts: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> LiveLimit:
        """Reads a limit from a text such as ``"2 buffers, 1 pipeline"``.

        Raises:
            InvalidArgumentError: the text has another form, or names an unknown kind; the message lists the kinds.
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
        """Returns by kind the number of objects beyond those before and the limit."""
        over = {kind: after[kind] - before.get(kind, 0) - self.counts.get(kind, 0) for kind in after}
        return {kind: count for kind, count in over.items() if count > 0}


NOTHING: Final = LiveLimit({})


def live_counts() -> dict[str, int]:
    """Returns the process's native objects by kind, without permanent objects."""
    return {_NAMES.get(kind, kind): count for kind, count in live_objects().items() if kind not in _KEPT}


def settled_counts(known: Mapping[str, int]) -> dict[str, int]:
    """Returns the counts without garbage and caches, which would count as alive.

    If the counts differ from the ``known`` ones, caches are emptied, which takes a tenth of a millisecond. If they
    still differ, garbage is collected, which takes longer than most tests.
    """
    counts = live_counts()
    if counts != known:
        _trim()
        counts = live_counts()
    if counts != known:
        gc.collect()
        finish_teardowns()
        _trim()
        counts = live_counts()
    return counts


def _trim() -> None:
    for device in open_devices:
        if not (device.is_closed or device.abandoned or device.lost):
            with contextlib.suppress(
                PumiceError
            ):  # for example because a device is being lost: that is reported elsewhere
                device.wait_idle()  # closed objects are freed only when no work uses them
                device.retire()
                device.trim()


def left_text(left: Mapping[str, int]) -> str:
    """Returns a text such as ``"2 buffers, 1 pipeline"``."""
    return ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in left.items())


@contextlib.contextmanager
def nothing_left(limit: str | LiveLimit | None = None) -> Iterator[None]:
    """Checks that a block leaves no native objects behind, such as open arrays, kernels, sessions or devices.

    Args:
        limit: the objects that may be left, such as ``"2 buffers"``.

    Raises:
        AssertionError: more objects are left.
        InvalidArgumentError: ``limit`` has another form.
    """
    allowed = NOTHING if limit is None else LiveLimit.parse(limit) if isinstance(limit, str) else limit
    before = settled_counts({})
    yield
    left = allowed.exceeded(before, settled_counts(before))
    assert not left, f"native objects left behind: {left_text(left)}"
