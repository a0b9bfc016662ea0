"""Samples one point, one block after another, until its stop rule is met."""

from __future__ import annotations

import math
from array import array

import numpy as np

from ..definition.point import Point
from ..definition.settings import Sampling
from ..results.storage.records import DISTURBED, kept
from .point_run import MAX_BLOCK_NS
from .stopping import Decision, StopRule
from .turns import Prior, Side, Turns


class SingleRun(Turns):
    """One point; see the module."""

    def __init__(self, side: Side, sampling: Sampling, prior: Prior | None = None) -> None:
        super().__init__([side.point])
        prior = prior or Prior()
        sampling = prior.limits(sampling)
        self.side = side
        self._sampling = sampling
        self._rule = StopRule(sampling)
        self._elapsed = 0.0
        # Arrays, which NumPy reads without a copy: converting long lists after each block took longer than samples.
        self._values = array("d", prior.values)
        self._blocks = array("q", prior.blocks)
        self._disturbed = array("b", prior.disturbed)
        self._block = prior.next_block
        self.count: int = len(prior.values)

    def start(self) -> None:
        self.side.start(self._block, again=False)
        self._block += 2

    def take_turn(self) -> Decision:
        sampling = self._sampling
        wanted = min(sampling.block, max(1, sampling.max_samples - self.count))
        block = self.side.take_block(self._block, wanted, most_ns=MAX_BLOCK_NS)
        self._add(block)
        self._elapsed += block.elapsed_ns / 1e9
        self._values.extend(block.values)
        self._blocks.extend([self._block] * len(block.values))
        self._disturbed.extend(bool(flag & DISTURBED) for flag in block.flags)
        self._block += 1
        self.side.read_reference()
        keep = kept(np.frombuffer(self._disturbed, np.bool_))
        # Excluded samples count too, so that a machine that disturbs every sample does not keep the point open.
        elapsed = math.inf if self.count >= sampling.max_samples else self._elapsed
        values, blocks = np.frombuffer(self._values), np.frombuffer(self._blocks, np.int64)
        return self._rule.update(values[keep], blocks=blocks[keep], elapsed=elapsed)

    @property
    def progress(self) -> float:
        sampling = self._sampling
        return min(1.0, max(self.count / sampling.max_samples, self._elapsed / max(sampling.time_limit, 1e-9)))

    def explain(self, decision: Decision) -> str:
        error = decision.relative_error
        told = f"{error:.2%}" if math.isfinite(error) else "that cannot be told"
        text = f"{decision.reason}: {self.count} samples, relative standard error of the median {told}"
        return f"{text}; {self.disturbances}" if self.disturbances else text

    @property
    def at(self) -> Point:
        return self.side.point

    def close(self) -> None:
        self.side.close()
