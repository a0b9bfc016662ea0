"""A virtual machine: a clock, and effects that determine the duration of work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from machine_effects import SECOND, Effect, Seen


@dataclass(frozen=True)
class Taken:
    """The nanoseconds of one sample: in total, on the device, of CPU time, and waiting for a core."""

    total: float
    execute: float
    cpu: float
    waited: float


class Machine:
    """A virtual machine. ``now`` is its clock in nanoseconds, which advances with work and with waiting; ``ran`` and
    ``waited`` are the times that threads have run and waited for a core.
    """

    def __init__(self, effects: Sequence[Effect], seed: int | Sequence[int], tick: float = 0.0) -> None:
        own, *streams = np.random.SeedSequence(seed).spawn(len(effects) + 1)
        self._rng = np.random.default_rng(own)
        # A plausible uptime.
        self.now = 1e12 + self._rng.random() * 1e15
        self.ran = self.waited = 0.0
        self._tick = tick
        for effect, stream in zip(effects, streams, strict=True):
            effect.begin(np.random.default_rng(stream), self.now)

        def having(name: str) -> list[Effect]:
            return [effect for effect in effects if getattr(type(effect), name) is not getattr(Effect, name)]

        self._factors, self._noises, self._wakes = having("factor"), having("noise"), having("wake")
        self._waits, self._instances, self._seen = having("waiting"), having("instance"), having("see")

    def opened(self) -> float:
        """Opens a workload, which takes 20 ms; returns the factor of its duration."""
        self.now += 0.02 * SECOND
        return math.prod(effect.instance() for effect in self._instances)

    def run(self, work: float, load: str = "work", instance: float = 1.0) -> Taken:
        """Does work whose least duration is ``work`` nanoseconds."""
        begin = now = self.now
        taken = work * instance
        for effect in self._factors:
            taken *= effect.factor(now, load)
        for effect in self._noises:
            taken *= effect.noise()
        cpu = taken
        waited = 0.0
        for effect in self._waits:
            waited += effect.waiting(now, taken)
        self.ran, self.waited = self.ran + cpu, self.waited + waited
        execute = taken = cpu + waited
        for effect in self._wakes:
            taken += effect.wake(now)
        self.now = begin + taken
        return Taken(self._read(taken), self._read(execute), cpu, waited)

    def _read(self, taken: float) -> float:
        """Returns a duration as the difference of two readings of a clock with ticks, at a random phase."""
        tick = self._tick
        return tick * math.floor(taken / tick + self._rng.random()) if tick else taken

    def pass_time(self, seconds: float) -> None:
        self.now += seconds * SECOND

    def see(self) -> Seen:
        """Returns the machine's state as readers see it now, with a few percent of noise."""
        seen = Seen()
        for effect in self._seen:
            effect.see(self.now, seen)
        for name, value in vars(seen).items():
            setattr(seen, name, value * self._rng.lognormal(0.0, 0.05))
        return seen
