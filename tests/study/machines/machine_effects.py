"""Effects that make equal work take unequal times on a virtual machine, with what readers of the machine's state see.

Times are nanoseconds of a virtual clock that only advances. Each effect draws its future on demand from its own random
generator: two machines with the same seed have the same history, whatever runs on them.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

SECOND = 1e9
LOADS = ("compute", "like", "work")
"""Loads: the computing reference kernel, the reference kernel like the work, and the work itself."""


@dataclass
class Seen:
    """The machine's state as readers see it: wake-up latencies in nanoseconds, fractions of processor time, and the
    clock in
    MHz.
    """

    wake_ns: float = 8_000.0
    wake_p90_ns: float = 15_000.0
    steal: float = 0.0
    pressure: float = 0.0
    others: float = 0.02
    run_delay: float = 0.0
    load: float = 0.1
    cpu_mhz: float = 3000.0


class Effect:
    """An effect that does nothing, the base of all others. A machine calls ``begin`` once, then the other methods at
    times
    that do not decrease.
    """

    def begin(self, rng: np.random.Generator, now: float) -> None:
        self.rng = rng

    def factor(self, now: float, load: str) -> float:
        """Returns the factor of a load's duration at a time."""
        return 1.0

    def noise(self) -> float:
        """Draws a factor for one sample."""
        return 1.0

    def instance(self) -> float:
        """Draws a factor for one opening of a workload."""
        return 1.0

    def wake(self, now: float) -> float:
        """Returns the nanoseconds that a wake-up adds to a sample."""
        return 0.0

    def waiting(self, now: float, taken: float) -> float:
        """Returns the nanoseconds in which a worker waits for a core during a sample; they are no CPU time."""
        return 0.0

    def see(self, now: float, seen: Seen) -> None:
        """Adds what readers see at a time."""


@dataclass
class Draws:
    """Numbers from one distribution, drawn many at a time."""

    rng: np.random.Generator
    kind: str
    parameters: tuple[float, ...]
    _kept: list[float] = field(default_factory=list)

    def next(self) -> float:
        if not self._kept:
            self._kept = getattr(self.rng, self.kind)(*self.parameters, size=256).tolist()
        return self._kept.pop()


@dataclass
class Noise(Effect):
    """A quiet machine: samples differ independently by a few percent."""

    sigma: float = 0.02

    def begin(self, rng: np.random.Generator, now: float) -> None:
        self._draws = Draws(rng, "lognormal", (0.0, self.sigma))

    def noise(self) -> float:
        return self._draws.next()


@dataclass
class HeavyTails(Effect):
    """Samples whose distribution has no variance, as with interrupts, page faults and timers."""

    scale: float = 0.02
    degrees: float = 2.0

    def begin(self, rng: np.random.Generator, now: float) -> None:
        self._draws = Draws(rng, "standard_t", (self.degrees,))

    def noise(self) -> float:
        return 1 + self.scale * abs(self._draws.next())


@dataclass
class Pieces(Effect, abc.ABC):
    """A level that stays for a while and is then drawn again, independently: a base of other effects.

    Attributes:
        least, most: seconds of a piece, uniformly distributed on a logarithmic scale.
    """

    least: float = 60.0
    most: float = 600.0
    level: float = field(default=1.0, init=False)
    _until: float = field(default=-math.inf, init=False)

    def begin(self, rng: np.random.Generator, now: float) -> None:
        self.rng = rng
        self.level = self.draw()
        # The start is somewhere within a piece, and more likely within a long one.
        lengths = self._lengths(64)
        length = rng.choice(lengths, p=lengths / lengths.sum())
        self._until = now + length * rng.random()

    def _lengths(self, count: int) -> np.ndarray:
        return np.exp(self.rng.uniform(math.log(self.least), math.log(self.most), count)) * SECOND

    def at(self, now: float) -> float:
        while now >= self._until:
            self._until += float(self._lengths(1)[0])
            # Pieces that ended long before are dropped.
            if now - self._until > 10 * self.most * SECOND:
                self._until = now + float(self._lengths(1)[0]) * self.rng.random()
            self.level = self.draw()
        return self.level

    @abc.abstractmethod
    def draw(self) -> float: ...


@dataclass
class States(Pieces):
    """Another tenant of the machine: for minutes all work takes up to twice as long.

    Attributes:
        most_factor: of the slowest state; factors are uniformly distributed on a logarithmic scale.
        sensitivity: the exponent of the factor for each load. A tenant that only fills caches and memory slows the work
            and hardly the arithmetic.
        wake: exponent for the wake-up latency; 0 for a state that does not affect it.
        steal: the share of the slowest state's time that the hypervisor accounts for.
    """

    most_factor: float = 2.0
    sensitivity: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(LOADS, 1.0))
    wake_exponent: float = 0.5
    steal: float = 0.1

    def draw(self) -> float:
        return float(np.exp(self.rng.uniform(0.0, math.log(self.most_factor))))

    def factor(self, now: float, load: str) -> float:
        return float(self.at(now) ** self.sensitivity[load])

    def see(self, now: float, seen: Seen) -> None:
        level = self.at(now)
        seen.wake_ns *= level**self.wake_exponent
        seen.wake_p90_ns *= level**self.wake_exponent
        seen.steal += self.steal * math.log(level)


@dataclass
class Drift(Effect):
    """Heat and clocks: a slow change, linear and periodic.

    Attributes:
        hourly: change of the logarithm per hour; it reverses at a factor of two.
        swing, period: amplitude, and period in seconds, of a sine with a random phase.
    """

    hourly: float = 0.0
    swing: float = 0.0
    period: float = 60.0

    def begin(self, rng: np.random.Generator, now: float) -> None:
        self._start = now
        # The position within a rise and fall, which covers four times the logarithm of 2.
        self._at = 4 * math.log(2) * rng.random()
        self._phase = 2 * math.pi * rng.random()

    def factor(self, now: float, load: str) -> float:
        passed = (now - self._start) / SECOND
        along = (self._at + self.hourly * passed / 3600) % (4 * math.log(2))
        level = abs(along - 2 * math.log(2)) - math.log(2)
        return (math.exp(level) if self.hourly else 1.0) * (
            1 + self.swing * math.sin(2 * math.pi * passed / self.period + self._phase)
        )


@dataclass
class Bursts(Effect):
    """Another process that computes at times: for 10 ms to seconds all work takes 1.5 to 3 times as long.

    Attributes:
        gap: mean seconds between bursts.
        least, most: seconds of a burst, uniformly distributed on a logarithmic scale.
    """

    gap: float = 1.0
    least: float = 0.01
    most: float = 2.0

    def begin(self, rng: np.random.Generator, now: float) -> None:
        self.rng = rng
        lengths = np.exp(rng.uniform(math.log(self.least), math.log(self.most), 64))
        self._mean = float(lengths.mean())
        self._level, self._until = 1.0, now
        self._burst = rng.random() > self._mean / (self._mean + self.gap)  # the next piece is the other kind

    def _at(self, now: float) -> float:
        rng = self.rng
        if now - self._until > 1000 * SECOND:
            self._until = now - 100 * SECOND
        while now >= self._until:
            if self._burst:
                self._level = 1.0
                self._until += rng.exponential(self.gap) * SECOND
            else:
                self._level = rng.uniform(1.5, 3.0)
                self._until += math.exp(rng.uniform(math.log(self.least), math.log(self.most))) * SECOND
            self._burst = not self._burst
        return self._level

    def factor(self, now: float, load: str) -> float:
        return self._at(now)

    def see(self, now: float, seen: Seen) -> None:
        share = self._mean / (self._mean + self.gap)
        seen.others += share
        seen.pressure += share / 2
        seen.run_delay += share / 3


@dataclass
class Starved(Pieces):
    """A driver's worker that waits for a core: some samples are milliseconds longer, without CPU time.

    Attributes:
        chance: the largest share of samples that wait; the share changes with the pieces.
        slice_ms: mean wait, a slice of the scheduler.
    """

    least: float = 0.5
    most: float = 60.0
    chance: float = 0.4
    slice_ms: float = 3.0

    def draw(self) -> float:
        return float(self.rng.uniform(0.0, self.chance))

    def waiting(self, now: float, taken: float) -> float:
        if self.rng.random() >= self.at(now):
            return 0.0
        return float(self.rng.exponential(self.slice_ms * 1e6))

    def see(self, now: float, seen: Seen) -> None:
        share = self.at(now)
        seen.pressure += share
        seen.run_delay += share
        seen.others += share
        seen.wake_p90_ns += 10 * share * self.slice_ms * 1e6 / 4


@dataclass
class Wakes(Pieces):
    """Sleeping cores: a wake-up takes 5 or 250 microseconds; the share of long ones varies with time.

    Attributes:
        short, long: nanoseconds of the two.
        rarest, commonest: bounds of the share of long ones.
    """

    least: float = 0.2
    most: float = 20.0
    short: float = 5_000.0
    long: float = 250_000.0
    rarest: float = 0.05
    commonest: float = 0.6

    def draw(self) -> float:
        return float(self.rng.uniform(self.rarest, self.commonest))

    def wake(self, now: float) -> float:
        return self.long if self.rng.random() < self.at(now) else self.short

    def see(self, now: float, seen: Seen) -> None:
        share = self.at(now)
        seen.wake_ns = self.long if share > 0.5 else seen.wake_ns
        seen.wake_p90_ns = self.long if share > 0.1 else seen.wake_p90_ns


@dataclass
class Frequencies(Pieces):
    """A clock whose frequency moves in steps, up and down, every tenth of a second to minutes."""

    least: float = 0.1
    most: float = 120.0
    steps: tuple[float, ...] = (1.0, 1.1, 1.25, 1.5)

    def draw(self) -> float:
        return float(self.rng.choice(self.steps))

    def factor(self, now: float, load: str) -> float:
        return self.at(now)

    def see(self, now: float, seen: Seen) -> None:
        seen.cpu_mhz /= self.at(now)


@dataclass
class Instances(Effect):
    """Placement of memory and code: each opening of a workload is up to 2 % faster or slower throughout."""

    spread: float = 0.02

    def instance(self) -> float:
        return float(1 + self.rng.uniform(-self.spread, self.spread))
