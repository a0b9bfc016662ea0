"""Attributes native functions, waits and submissions to the calls whose steps contain them.

While a profile runs, only times are recorded; intervals are nested here afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...hal.queue import TimedSubmission
from .call import CallRecord
from .native import NativeTimes

_PROBE: Final = 0
_INTERVAL: Final = 1

NativeCall: TypeAlias = tuple[str, int | None, int, int]
"""Name, index of the session's call or ``None``, begin and end."""


@dataclass(slots=True)
class HostShares:
    """The host's time in one call, in nanoseconds."""

    steps: int = 0
    vm: int = 0
    hal: int = 0
    native: int = 0
    waits: int = 0


@dataclass(slots=True)
class Attribution:
    """The records of dispatches and of the host, assigned to calls.

    Attributes:
        shares: the host's shares, one record for each call.
        submitters: the index of the call that made each submission, by the submission's id().
        waits: the waits that native functions requested.
        natives: the calls of native functions.
    """

    shares: list[HostShares]
    submitters: dict[int, int] = field(default_factory=dict)
    waits: list[NativeCall] = field(default_factory=list)
    natives: list[NativeCall] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """An open interval: a step of a call (``native`` is ``None``) or a call of a native function."""

    begin: int
    end: int
    call: int | None
    native: NativeTimes | None
    inside: int = 0  # nanoseconds of nested intervals


def attribute(
    records: Sequence[CallRecord],
    natives: Sequence[NativeTimes],
    submissions: Sequence[TimedSubmission],
    *,
    concurrent: bool,
) -> Attribution:
    """Sweeps over all intervals in order of time.

    If ``concurrent``, invocations overlap in different threads. Otherwise one runs at a time, in any thread.
    """
    attribution = Attribution([HostShares() for _ in records])
    lanes: dict[int, list[tuple[int, int, int, int, object]]] = {}

    def put(thread: int, begin: int, order: int, end: int, owner: object) -> None:
        lane = lanes.setdefault(thread if concurrent else 0, [])
        lane.append((begin, order, -end, len(lane), owner))

    for index, record in enumerate(records):
        for thread, begin, end in record.steps:
            attribution.shares[index].steps += end - begin
            put(thread, begin, _INTERVAL, end, index)
    for native in natives:
        for thread, begin, end in native.calls:
            put(thread, begin, _INTERVAL, end, native)
        pairs = list(native.pairs)
        for begin, end in zip(pairs[::2], pairs[1::2], strict=False):
            put(0, begin, _INTERVAL, end, native)
        for thread, begin, end in native.waits:
            put(thread, begin, _PROBE, end, native)
    for submission in submissions:
        put(submission.thread, submission.submit_ns, _PROBE, submission.submit_ns, submission)
    for lane in lanes.values():
        lane.sort(key=lambda item: item[:4])
        _sweep(lane, records, attribution)
    return attribution


def _sweep(
    lane: Sequence[tuple[int, int, int, int, object]], records: Sequence[CallRecord], attribution: Attribution
) -> None:
    stack: list[_Open] = []

    def close(interval: _Open) -> None:
        own = interval.end - interval.begin - interval.inside
        parent = stack[-1] if stack else None
        if interval.native is None:
            assert interval.call is not None
            shares = attribution.shares[interval.call]
            if records[interval.call].function.native is not None:
                shares.native += own
            else:
                shares.vm += own
            return  # a nested call is part of the calling native function
        if parent is not None:
            parent.inside += interval.end - interval.begin
        if interval.call is not None:
            if interval.native.name.startswith("hal."):
                attribution.shares[interval.call].hal += own
            else:
                attribution.shares[interval.call].native += own
        attribution.natives.append((interval.native.name, interval.call, interval.begin, interval.end))

    for begin, order, negative_end, _, owner in lane:
        while stack and stack[-1].end <= begin:
            close(stack.pop())
        top = stack[-1] if stack else None
        call = None if top is None else top.call
        if order == _PROBE:
            if isinstance(owner, TimedSubmission):
                if call is not None:
                    attribution.submitters[id(owner)] = call
            elif isinstance(owner, NativeTimes):
                attribution.waits.append((owner.name, call, begin, -negative_end))
                if top is not None and call is not None and not records[call].is_async:
                    attribution.shares[call].waits += -negative_end - begin
                    top.inside += -negative_end - begin
        elif isinstance(owner, NativeTimes):
            stack.append(_Open(begin, -negative_end, call, owner))
        else:
            assert isinstance(owner, int)
            stack.append(_Open(begin, -negative_end, owner, None))
    while stack:
        close(stack.pop())
