"""Settings of a study's measurement: sampling (warm-up, when a point is done, the reference kernel), and processes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from typing import Any, Final, Literal, TypeVar

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shown

_Value = TypeVar("_Value")


def _setting(
    default: _Value, doc: str, least: float = 0, most: float = math.inf, choices: Sequence[str] = ()
) -> _Value:
    """Makes a field with its limits, and its description for docs/reference/study.md."""
    return field(default=default, metadata={"doc": doc, "least": least, "most": most, "choices": choices})


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of sampling; docs/reference/study.md describes the fields.

    Raises:
        InvalidArgumentError: a value has the wrong type or is out of its range.
    """

    warmup_count: int = _setting(5, "fewest samples that warm up a point")
    warmup_time: float = _setting(0.05, "fewest seconds of warm-up")
    min_samples: int = _setting(30, "fewest samples of a point", 1)
    max_samples: int = _setting(2000, "most samples of a point", 1)
    time_limit: float = _setting(5.0, "seconds of sampling after which a point is done, however noisy")
    criterion: Literal["error", "entropy"] = _setting(
        "error",
        "`error`: done when the relative standard error of the median is at most `relative_error`; `entropy`: when the "
        "entropy of the samples' distribution no longer grows",
        choices=("error", "entropy"),
    )
    relative_error: float = _setting(0.005, "for `error`, as a fraction")
    noise_limit: float = _setting(0.05, "relative standard error above which a finished point counts as too noisy")
    resolution: float = _setting(
        0.025,
        "of two versions: the largest half-width of their ratio's interval, as a fraction; a pair that ends with a "
        "wider interval counts as too noisy",
        1e-6,
    )
    statistic: Literal["minimum", "median", "p90", "p95", "p99", "p99.9"] = _setting(
        "median",
        "of two versions: the compared figure, `minimum`, `median`, `p90`, `p95`, `p99` or `p99.9`; others than the "
        "median take more samples, `p99` at least 1600 of each side",
        choices=("minimum", "median", "p90", "p95", "p99", "p99.9"),
    )
    confidence: float = _setting(0.95, "level of the intervals that are reported", 0.5, 0.9999)
    block: int = _setting(10, "samples taken of a point at a time", 1)
    interleave: int = _setting(16, "points that are open at a time, their blocks in random order", 1)
    seed: int = _setting(0, "of the random order and of the bootstrap")
    cache: Literal["hot", "cold"] = _setting(
        "hot", "`hot`, or `cold` to sweep device memory before each sample", choices=("hot", "cold")
    )
    flush_bytes: int | None = _setting(
        None, "bytes that a sweep touches; default: four times the largest cache that is known, at least 64 MiB", 1
    )
    reference: bool = _setting(True, "whether a reference kernel runs throughout, to detect throttling")
    reference_limit: float = _setting(0.1, "relative change of the reference kernel's time that counts as throttling")

    def __post_init__(self) -> None:
        for setting in fields(self):
            _check(setting, getattr(self, setting.name))
        if self.max_samples < self.min_samples:
            raise InvalidArgumentError(
                f"max_samples is {self.max_samples}, less than min_samples, which is {self.min_samples}"
            )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(setting.name for setting in fields(cls))


_KINDS: Final = {"int": ((int,), "an int"), "float": ((int, float), "a number")}


def _check(setting: Field[Any], value: object) -> None:
    name, limits = setting.name, setting.metadata
    if choices := limits["choices"]:
        if value not in choices:
            raise InvalidArgumentError(f"{name} is one of {', '.join(choices)}; got {shown(value)}")
        return
    kind, _, optional = str(setting.type).partition(" | ")
    if optional and value is None:
        return
    if kind == "bool":
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"{name} is true or false, got {shown(value)}")
        return
    accepted, text = _KINDS[kind]
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise InvalidArgumentError(f"{name} is {text}, got {shown(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgumentError(f"{name} is finite, got {shown(value)}; for no limit use 1e9")
    least, most = limits["least"], limits["most"]
    if not least <= value <= most:
        bound = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise InvalidArgumentError(f"{name} is {bound}, got {shown(value)}")


@dataclass(frozen=True, slots=True)
class Process:
    """A separate process that measures.

    Attributes:
        python: the interpreter of another installation of pumice, by its path or name; empty for the interpreter that
            runs the study.
        variables: the additional environment variables.

    Raises:
        InvalidArgumentError: a variable is not a text, or its name is not a valid variable name.
    """

    python: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.python, str) or "\0" in self.python:
            raise InvalidArgumentError(f"expected an interpreter, got {shown(self.python)}", location="python")
        if not isinstance(self.variables, Mapping):
            raise InvalidArgumentError(f"expected variables by name, got {shown(self.variables)}", location="variables")
        for name, value in self.variables.items():
            texts = isinstance(name, str) and isinstance(value, str)
            if not texts or not name or "=" in name or "\0" in name + value:
                raise InvalidArgumentError(
                    f"expected texts by the names of variables, got {shown(name)} = {shown(value)}",
                    location="variables",
                )
        object.__setattr__(self, "variables", dict(self.variables))

    def __str__(self) -> str:
        by = f", by {self.python}" if self.python else ""
        return f"in processes of its own{by}" + "".join(f", {name}={value}" for name, value in self.variables.items())
