"""What disturbed the samples of a point: its ``SampleFlag`` bits.

- **STARVED**: the sample took longer than most, its processor time does not explain that, and the process' threads
  waited longer for a core during the block than they mostly do. On a device that is the CPU its workers are such
  threads. Where all samples starve alike none is flagged: that is the machine's state, see ``machine_state``.
- **PREEMPTED**: threads were preempted, and in most samples of the point they are not. (The threads of a software
  driver preempt one another in nearly every sample, which says nothing.)
- **THROTTLED**: the reference like the point's load ran at another speed than most of the time.
- **CLOCK_UNSURE**: device times could not be related well to the host's clock.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..definition.sample import Sample
from ..results.records import SampleFlag

# A larger deviation, as a fraction of the total, puts device times in doubt.
_UNSURE: Final = 0.05
# Time that processor time does not explain, as a fraction of the median total.
_UNEXPLAINED: Final = 0.1
# Of the unexplained time of a block, what threads have waited at least.
_WAITED: Final = 0.5
_MIN_BLOCKS: Final = 3


class Disturbances:
    """Flags the samples of one point, block after block."""

    def __init__(self) -> None:
        self._totals, self._cpu, self._preemptions = array("d"), array("d"), array("q")
        self._waits = array("d")

    def flags(self, samples: Sequence[Sample], waited_ns: float | None, *, throttled: bool) -> list[SampleFlag]:
        """The flags of a block's samples; ``waited_ns``: how long threads waited for a core during the block, ``None``
        if that is not known.
        """
        starved = self._starved(samples, waited_ns)
        self._preemptions.extend(sample.preemptions for sample in samples)
        usual = float(np.median(self._preemptions)) if samples else 0.0
        flags = []
        for sample, is_starved in zip(samples, starved, strict=True):
            flag = SampleFlag.THROTTLED if throttled else SampleFlag(0)
            if is_starved:
                flag |= SampleFlag.STARVED
            if sample.preemptions > 0 and usual < 1:
                flag |= SampleFlag.PREEMPTED
            if sample.deviation > _UNSURE * sample.total or sample.wake < -max(sample.deviation, 0.0) - 1000:
                flag |= SampleFlag.CLOCK_UNSURE
            flags.append(flag)
        return flags

    def _starved(self, samples: Sequence[Sample], waited_ns: float | None) -> NDArray[np.bool_]:
        none = np.zeros(len(samples), dtype=np.bool_)
        if waited_ns is None or any(math.isnan(sample.cpu) for sample in samples):
            return none
        totals = np.array([sample.total for sample in samples])
        cpu = np.array([sample.cpu for sample in samples])
        if len(self._waits) >= _MIN_BLOCKS:
            usual = float(np.median(self._totals))
            unexplained = totals - usual - np.maximum(0.0, cpu - float(np.median(self._cpu)))
            found = unexplained > _UNEXPLAINED * usual
            excess = waited_ns - len(samples) * float(np.median(self._waits))
            if excess >= _WAITED * float(np.sum(unexplained[found])):
                none = found
        self._totals.extend(totals)
        self._cpu.extend(cpu)
        self._waits.append(waited_ns / len(samples))
        return none
