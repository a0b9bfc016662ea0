"""Studies: what is measured over which axes, and how; from a TOML file (``study_file``) or made in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .axis import Axis
from .settings import Sampling

__all__ = ["FORMAT_VERSION", "Study", "Target"]

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Target:
    """What is measured.

    Attributes:
        name: in results.
        kind: which workload runs it: see ``workloads.KINDS``.
        settings: the workload's; a string that begins with ``$`` is an expression over the axes, such as ``"$n // local_size"``.
            An axis that has a setting's name sets it, where the target does not.
        measure: the headline: a segment or ``"total"``; ``None`` takes the workload's own.
    """

    name: str
    kind: str
    settings: Mapping[str, object] = field(default_factory=dict)
    measure: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A study.

    Attributes:
        name: a short one, of letters, digits and ``-_``.
        title: for people.
        question: what it answers.
        reading: how its results are read.
        targets: what is measured.
        axes: what is varied; points are all combinations, with all targets.
        devices: URIs; empty takes the default device.
        sampling: how.
        derived: figures by name, each an expression over axes, settings, earlier figures, and the measured seconds
            ``record``, ``submit``, ``queue``, ``execute``, ``wake``, ``read``, ``total`` and ``time`` (the headline), such as
            ``{"bytes": "12 * n", "GB/s": "bytes / time / 1e9"}``. ``bytes`` and ``flops`` give GB/s, GFLOP/s and the share of the
            measured peaks by themselves.
        fit: names of numeric axes over which a line is fitted to the headline: the slope is the marginal cost, the intercept the fixed one.
        compare: name of the axis, or ``"target"``, whose values are compared with each other; ``None`` for none.
        reference: the value of it that the others are compared with; ``None`` takes the first.
        baseline: whether the empty kernel is measured in the setting of each point that can have one.
        peaks: whether the device's peaks are measured at the beginning of the run.
        folder: what relative file names start from.
        text: the TOML text that it was made from, if it was.
    """

    name: str
    targets: tuple[Target, ...]
    axes: tuple[Axis, ...] = ()
    title: str = ""
    question: str = ""
    reading: str = ""
    devices: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    derived: Mapping[str, str] = field(default_factory=dict)
    fit: tuple[str, ...] = ()
    compare: str | None = None
    reference: str | int | float | bool | None = None
    baseline: bool = False
    peaks: bool = False
    folder: Path = field(default_factory=Path)
    text: str | None = None
