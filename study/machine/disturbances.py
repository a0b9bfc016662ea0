"""Disturbances of a point's samples: their ``SampleFlag`` bits.

- **STARVED**: the sample took longer than most, its processor time does not explain that, and the process's threads
  waited longer for a core during the block than usual. On a CPU device these include its workers. If all samples starve
  alike, none is flagged: that is the machine's state, see ``machine_state``.
- **PREEMPTED**: threads were preempted, and in nine of ten samples of the point so far they were not. (The threads of a
  software driver preempt one another in many samples, with little effect on their time.)
- **THROTTLED**: the reference like the point's load ran at another speed than most of the time.
- **CLOCK_UNSURE**: device times could not be related well to the host's clock.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from ..definition.sample import Sample
from ..results.storage.records import SampleFlag

# As ints: each operation on flags takes a microsecond.
_STARVED, _PREEMPTED = int(SampleFlag.STARVED), int(SampleFlag.PREEMPTED)
_THROTTLED, _CLOCK_UNSURE = int(SampleFlag.THROTTLED), int(SampleFlag.CLOCK_UNSURE)
# A larger deviation, as a fraction of the total, puts device times in doubt.
_UNSURE: Final = 0.05
# Time that processor time does not explain, as a fraction of the median total.
_UNEXPLAINED: Final = 0.1
# The least share of a block's unexplained time that threads must have waited.
_WAITED: Final = 0.5
_MIN_BLOCKS: Final = 3
# The largest share of preempted samples at which preemption still indicates a disturbance.
_TELLING: Final = 0.1
_GROWTH: Final = 1.25


class _Usual:
    """The median of figures so far.

    It is recomputed whenever their number has grown by a quarter, as it costs more than a sample.
    """

    def __init__(self) -> None:
        self._values = array("d")
        self._next = 0
        self.median = 0.0

    def __len__(self) -> int:
        return len(self._values)

    def add(self, values: Iterable[float]) -> None:
        self._values.extend(values)
        if len(self._values) >= self._next and self._values:
            self._next = math.ceil(_GROWTH * len(self._values))
            self.median = float(np.median(self._values))


class Disturbances:
    """Flags the samples of one point, one block after another."""

    def __init__(self) -> None:
        self._total, self._cpu, self._waited = _Usual(), _Usual(), _Usual()
        self._seen = self._preempted = 0

    def flags(self, samples: Sequence[Sample], waited_ns: float | None, *, throttled: bool) -> list[int]:
        """Returns the ``SampleFlag`` bits of a block's samples. ``waited_ns`` is the time for which threads waited for
        a core during the block, None if unknown.
        """
        starved = self._starved(samples, waited_ns)
        self._seen += len(samples)
        self._preempted += sum(sample.preemptions > 0 for sample in samples)
        preemptions_tell = self._preempted <= _TELLING * self._seen
        flags = []
        for index, sample in enumerate(samples):
            flag = _THROTTLED if throttled else 0
            if index in starved:
                flag |= _STARVED
            if sample.preemptions > 0 and preemptions_tell:
                flag |= _PREEMPTED
            if sample.deviation > _UNSURE * sample.total or sample.wake < -max(sample.deviation, 0.0) - 1000:
                flag |= _CLOCK_UNSURE
            flags.append(flag)
        return flags

    def _starved(self, samples: Sequence[Sample], waited_ns: float | None) -> Collection[int]:
        if waited_ns is None or not samples or any(math.isnan(sample.cpu) for sample in samples):
            return ()
        starved: dict[int, float] = {}
        if len(self._waited) >= _MIN_BLOCKS:
            usual, cpu = self._total.median, self._cpu.median
            for index, sample in enumerate(samples):
                unexplained = sample.total - usual - max(0.0, sample.cpu - cpu)
                if unexplained > _UNEXPLAINED * usual:
                    starved[index] = unexplained
            if waited_ns - len(samples) * self._waited.median < _WAITED * sum(starved.values()):
                starved = {}
        self._total.add(sample.total for sample in samples)
        self._cpu.add(sample.cpu for sample in samples)
        self._waited.add((waited_ns / len(samples),))
        return starved
