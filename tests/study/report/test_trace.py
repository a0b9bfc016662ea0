"""Traces of samples, parsed with Perfetto's own messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from support.made_studies import made, taken

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
        one.track_descriptor.uuid: one.track_descriptor.name for one in trace.packet if one.HasField("track_descriptor")
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
        one = (names[event.track_uuid], first.name, first.categories[0], begin, packet.timestamp)
        slices.append(one)
        starts |= dict.fromkeys(first.flow_ids, one)
        ends |= dict.fromkeys(first.terminating_flow_ids, one)
    assert not begun
    return slices, starts, ends


def check(results: Results, data: bytes) -> None:
    slices, starts, ends = read(data)
    samples = [each for one in results.points for phase in ("first", "warmup", "sample") for each in one.samples(phase)]
    whole = [one for one in slices if one[2] in ("first", "warmup", "sample")]
    assert sorted(one[3] for one in whole) == sorted(each.started for each in samples)
    # Every arrow starts at a submission and ends at the device's execution of the same sample.
    timed = {each.started: each for each in samples if each.execute == each.execute and each.submit == each.submit}
    assert starts.keys() == ends.keys() and len(starts) == len(timed)
    found = sorted(whole, key=lambda one: one[3])
    for flow, (_, name, _, begin, _) in starts.items():
        assert name == "submit"
        _, label, category, device_begin, device_end = ends[flow]
        mine = next(one for one in reversed(found) if one[3] <= begin)
        sample = timed[mine[3]]
        assert (category, label) == ("execute", mine[1])
        assert device_end - device_begin == pytest.approx(sample.execute, abs=1)
        parts = sum(each for each in (sample.create, sample.update, sample.record) if each == each)
        assert begin - sample.started == pytest.approx(parts, abs=2)
        overlap = sample.overlap if sample.overlap == sample.overlap else 0
        expected = parts + sample.submit + sample.queue - overlap
        assert device_begin - sample.started == pytest.approx(expected, abs=2)
    # Parts of a sample end within it.
    ends_at = {one[3]: one[4] for one in whole}
    for _, _, category, begin, end in slices:
        if category == "segment":
            mine = max(started for started in ends_at if started <= begin)
            assert end <= ends_at[mine]


def test_samples_and_arrows(tmp_path: Path) -> None:
    def few(store: Store, points: tuple[Point, ...]) -> None:
        for point in points[:3]:
            store.add_samples(point.index, 0, "first", taken(point, 1, seed=7))
            later = [one._replace(started=one.started + 10**9) for one in taken(point, 20)]
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
