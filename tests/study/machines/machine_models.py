"""The virtual machines for trials of comparisons, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from machine import Machine
from machine_effects import (
    Bursts,
    Drift,
    Effect,
    Frequencies,
    HeavyTails,
    Instances,
    Noise,
    Starved,
    States,
    Wakes,
)


@dataclass(frozen=True)
class Model:
    """A kind of machine.

    Attributes:
        name: of the model.
        effects: creates the effects of one machine.
        work: the least nanoseconds of a sample.
        tick: nanoseconds of the clock's tick; 0 for a fine one.
    """

    name: str
    effects: Callable[[], Sequence[Effect]]
    work: float = 200_000.0
    tick: float = 0.0

    def machine(self, seed: int | Sequence[int]) -> Machine:
        return Machine(self.effects(), seed, self.tick)


_MEMORY = {"compute": 0.1, "like": 0.9, "work": 1.0}
_THREADS = {"compute": 0.0, "like": 0.7, "work": 1.0}
_IN_PART = {"compute": 0.1, "like": 0.4, "work": 1.0}

MODELS: tuple[Model, ...] = (
    Model("quiet", lambda: [Noise()]),
    Model("instances", lambda: [Noise(), Instances()]),
    Model("heavy tails", lambda: [HeavyTails(), Instances()]),
    Model("coarse clock", lambda: [Noise(), Instances()], work=2_000.0, tick=52.083),
    Model("drift, linear", lambda: [Noise(), Instances(), Drift(hourly=2.0)]),
    Model("drift, sinusoidal", lambda: [Noise(), Instances(), Drift(swing=0.2, period=40.0)]),
    Model("states", lambda: [Noise(), Instances(), States()]),
    Model("states of memory", lambda: [Noise(), Instances(), States(sensitivity=_MEMORY, steal=0.0)]),
    Model("states of threads", lambda: [Noise(), Instances(), States(sensitivity=_THREADS, steal=0.0)]),
    Model(
        "states seen in part",
        lambda: [Noise(), Instances(), States(sensitivity=_IN_PART, wake_exponent=0.0, steal=0.0)],
    ),
    Model("bursts", lambda: [Noise(), Instances(), Bursts()]),
    Model("starved workers", lambda: [Noise(), Instances(), Starved()]),
    Model("wake-ups", lambda: [Noise(), Instances(), Wakes()]),
    Model("frequency steps", lambda: [Noise(), Instances(), Frequencies()]),
    Model(
        "shared machine",
        lambda: [HeavyTails(), Instances(), States(), Bursts(), Starved(chance=0.2), Wakes(commonest=0.4)],
    ),
)


def model(name: str) -> Model:
    """Returns the model with a name."""
    return next(model for model in MODELS if model.name == name)
