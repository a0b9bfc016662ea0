"""How a study is sampled: warm-up, when a point is done, what is watched meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from ...status import InvalidArgumentError

__all__ = ["Sampling"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How points are sampled.

    Attributes:
        warmup_count, warmup_time: a point is warmed up by at least so many samples and so many seconds.
        min_samples, max_samples: fewest and most samples of a point.
        time_limit: seconds of sampling a point, after which it is done whatever the noise.
        criterion: ``"error"`` ends a point when the relative standard error of the median, by bootstrap, is at most
            ``relative_error``; ``"entropy"`` when the entropy of its samples' distribution no longer grows.
        relative_error: see above; a fraction.
        noise_limit: a point that ends with a larger relative standard error of the median is too noisy; a fraction.
        confidence: level of the intervals that are reported.
        block: samples taken of a point at a time, before it is another point's turn.
        interleave: how many points are open at a time, their blocks in random order.
        seed: of the random order and of the bootstrap.
        cache: ``"hot"``, or ``"cold"`` to sweep device memory before each sample.
        flush_bytes: how much a sweep touches; ``None`` takes four times the largest cache that is known, at least 64 MiB.
        reference: whether a reference kernel is run throughout, to detect throttling.
        reference_limit: change of the reference kernel's time that counts as throttling; a fraction.

    Raises:
        InvalidArgumentError: a value outside its range.
    """

    warmup_count: int = 5
    warmup_time: float = 0.05
    min_samples: int = 30
    max_samples: int = 2000
    time_limit: float = 5.0
    criterion: Literal["error", "entropy"] = "error"
    relative_error: float = 0.005
    noise_limit: float = 0.05
    confidence: float = 0.95
    block: int = 10
    interleave: int = 16
    seed: int = 0
    cache: Literal["hot", "cold"] = "hot"
    flush_bytes: int | None = None
    reference: bool = True
    reference_limit: float = 0.1

    def __post_init__(self) -> None:
        for name in ("min_samples", "max_samples", "block", "interleave"):
            _check(self, name, int, 1, None)
        for name in ("warmup_count", "seed"):
            _check(self, name, int, 0, None)
        for name in ("warmup_time", "time_limit"):
            _check(self, name, float, 0, None)
        for name in ("relative_error", "noise_limit", "reference_limit"):
            _check(self, name, float, 0, None)
        _check(self, "confidence", float, 0.5, 0.9999)
        if self.flush_bytes is not None:
            _check(self, "flush_bytes", int, 1, None)
        if self.max_samples < self.min_samples:
            raise InvalidArgumentError(
                f"max_samples is {self.max_samples}, less than min_samples, which is {self.min_samples}"
            )
        for name, choices in (("criterion", ("error", "entropy")), ("cache", ("hot", "cold"))):
            if getattr(self, name) not in choices:
                raise InvalidArgumentError(f"{name} is one of {', '.join(choices)}; got {getattr(self, name)!r}")
        if not isinstance(self.reference, bool):
            raise InvalidArgumentError(f"reference is true or false, got {self.reference!r}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings."""
        return tuple(one.name for one in fields(cls))


def _check(sampling: Sampling, name: str, kind: type[int] | type[float], least: float, most: float | None) -> None:
    value: object = getattr(sampling, name)
    accepted = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise InvalidArgumentError(f"{name} is {'an int' if kind is int else 'a number'}, got {value!r}")
    if not math.isfinite(value):
        raise InvalidArgumentError(f"{name} is finite, got {value!r}; for ever is 1e9")
    if not value >= least or (most is not None and value > most):
        bound = f"at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        raise InvalidArgumentError(f"{name} is {bound}, got {value!r}")
