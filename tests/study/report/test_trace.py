"""Traces of samples, parsed with Perfetto's own messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from support.study.made_studies import made, taken

from pumice import shaders
from pumice.study import Point, Results
from pumice.study.report.trace import samples_trace
from pumice.study.results.storage.store import Store
from pumice.tools.cli import main

Slice = tuple[str, str, str, int, int]
"""Track, name, category, begin and end."""


def read(data: bytes) -> tuple[list[Slice], dict[int, Slice], dict[int, Slice]]:
    """Returns all slices, and by flow the slices at which it starts and ends."""
    trace = Trace.FromString(data)
    names = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    slices, begun, starts, ends = [], {}, {}, {}
    for packet in trace.packet:
        event = packet.track_event
        if not packet.HasField("track_event"):
            continue
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in begun
            begun[event.track_uuid] = event, packet.timestamp
            continue
        first, begin = begun.pop(event.track_uuid)
        assert begin <= packet.timestamp
        slice_ = (names[event.track_uuid], first.name, first.categories[0], begin, packet.timestamp)
        slices.append(slice_)
        starts |= dict.fromkeys(first.flow_ids, slice_)
        ends |= dict.fromkeys(first.terminating_flow_ids, slice_)
    assert not begun
    return slices, starts, ends


def check(results: Results, data: bytes) -> None:
    slices, starts, ends = read(data)
    samples = [
        sample
        for result in results.points
        for phase in ("first", "warmup", "sample")
        for sample in result.samples(phase)
    ]
    whole = [slice_ for slice_ in slices if slice_[2] in ("first", "warmup", "sample")]
    assert sorted(slice_[3] for slice_ in whole) == sorted(sample.started for sample in samples)
    # Every arrow starts at a submission and ends at the device's execution of the same sample.
    timed = {
        sample.started: sample
        for sample in samples
        if sample.execute == sample.execute and sample.submit == sample.submit
    }
    assert starts.keys() == ends.keys() and len(starts) == len(timed)
    by_start = sorted(whole, key=lambda one: one[3])
    for flow, (_, name, _, begin, _) in starts.items():
        assert name == "submit"
        _, label, category, device_begin, device_end = ends[flow]
        mine = next(one for one in reversed(by_start) if one[3] <= begin)
        sample = timed[mine[3]]
        assert (category, label) == ("execute", mine[1])
        assert device_end - device_begin == pytest.approx(sample.execute, abs=1)
        parts = sum(duration for duration in (sample.create, sample.update, sample.record) if duration == duration)
        assert begin - sample.started == pytest.approx(parts, abs=2)
        overlap = sample.overlap if sample.overlap == sample.overlap else 0
        expected = parts + sample.submit + sample.queue - overlap
        assert device_begin - sample.started == pytest.approx(expected, abs=2)
    # Parts of a sample end within it.
    ends_at = {slice_[3]: slice_[4] for slice_ in whole}
    for _, _, category, begin, end in slices:
        if category == "segment":
            mine = max(started for started in ends_at if started <= begin)
            assert end <= ends_at[mine]


def test_samples_and_arrows(tmp_path: Path) -> None:
    def few(store: Store, points: tuple[Point, ...]) -> None:
        for point in points[:3]:
            store.add_samples(point.index, 0, "first", taken(point, 1, seed=7))
            later = [sample._replace(started=sample.started + 10**9) for sample in taken(point, 20)]
            store.add_samples(point.index, 1, "sample", later)

    with made(tmp_path, fill=few) as results:
        check(results, samples_trace(results))


@pytest.mark.vulkan
def test_bench_writes_a_trace(tmp_path: Path) -> None:
    words = ["bench", str(shaders.path("mul")), "--size", "64", "--no-baseline"]
    words += ["--set", "max_samples=30", "--set", "noise_limit=9", "--out", str(tmp_path / "r")]
    result = CliRunner().invoke(main, [*words, "--trace", str(tmp_path / "t.pftrace"), "--quiet"])
    assert result.exit_code in (0, 3), result.output  # 3: too noisy, as a busy machine may be
    with Results.open(tmp_path / "r") as results:
        check(results, (tmp_path / "t.pftrace").read_bytes())
