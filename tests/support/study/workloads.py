"""Workloads opened for tests, and checks that every sample has to pass."""

from __future__ import annotations

import math

import pytest

from pumice.runtime.profiling.clock import ClockRelation
from pumice.study.definition.point import Point
from pumice.study.definition.sample import SEGMENTS, Sample
from pumice.study.definition.settings import Sampling
from pumice.study.definition.target_settings import KINDS
from pumice.study.workloads.clock import RawSample, resolve
from pumice.study.workloads.kernel import KernelWorkload
from pumice.study.workloads.openers import open_workload
from pumice.study.workloads.workload import Workload, WorkloadContext

N = 256
MUL = {
    "source": "builtin:mul",
    "bindings": [{"shape": N, "init": "arange"}, {"shape": N, "init": 3}, {"shape": N, "init": "zeros"}],
}
SAXPY = {
    "source": "builtin:examples/saxpy",
    "bindings": [{"shape": N, "init": "arange"}, {"shape": N, "init": 100}],
    "push": {"a": 0.5},
}
ADDRESS = {"source": "builtin:timing/mul_address", "push": [N, 0], "groups": N // 64, "descriptors": "address"}


def opened(kind: str, context: WorkloadContext, **given: object) -> Workload:
    settings = {setting.name: setting.default for setting in KINDS[kind].settings} | given
    return open_workload(kind, Point(0, kind, context.uri, settings=settings), context, Sampling())


def kernel(context: WorkloadContext, **given: object) -> KernelWorkload:
    workload = opened("kernel", context, **given)
    assert isinstance(workload, KernelWorkload)
    return workload


def take(workload: Workload, count: int = 3) -> list[Sample]:
    """Returns the first call and ``count`` samples, each checked for what must be true of every sample."""
    hal = workload.device.hal
    timed = bool(hal.plan.timestamp_bits)
    before = hal.calibrate() if timed else None
    raws = [workload.first(), *(workload.sample() for _ in range(count))]
    relation = None if before is None else ClockRelation(hal.profile.name, (before, hal.calibrate()))
    samples = resolve(raws, relation)
    for raw, sample in zip(raws, samples, strict=True):
        check(raw, sample, relation)
    assert [sample.started for sample in samples] == sorted(sample.started for sample in samples)
    return samples


def check(raw: RawSample, sample: Sample, relation: ClockRelation | None) -> None:
    parts = {name: getattr(sample, name) for name in SEGMENTS if not math.isnan(getattr(sample, name))}
    between = 0.0 if "execute" in parts or "submit" not in parts or raw.awake < 0 else sample.device
    overlap = 0.0 if math.isnan(sample.overlap) else sample.overlap
    assert sum(parts.values()) + between - overlap == pytest.approx(sample.total, abs=1)
    assert all(value >= 0 for name, value in parts.items() if name != "wake")
    events = [raw.begin, raw.created, raw.updated, raw.recorded, raw.called, raw.returned, raw.awake, raw.done]
    happened = [event for event in events if event >= 0]
    assert happened == sorted(happened)
    if relation is not None and raw.device_begin >= 0:
        slack = relation.deviation_ns + 1
        began = relation.base_ns + float(relation.host_ns([raw.device_begin], [raw.awake])[0])
        assert raw.called - slack <= began
        assert began + sample.execute <= raw.awake + slack
        assert sample.wake >= -slack and sample.execute >= 0
        assert sample.stage


def has(sample: Sample) -> set[str]:
    return {name for name in SEGMENTS if not math.isnan(getattr(sample, name))}
