"""The engineer's day on a real device: no verdict is wrong while other processes compute in bursts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from engineers_day import KERNELS, WAYS, Judged, bursts, day, table
from support.soak import rounds

from pumice.hal_vulkan.instance.driver import Driver

TIMES = {"interleaved": rounds(1, 10), "single": rounds(0, 10), "runs": rounds(0, 3)}


@pytest.mark.vulkan
@pytest.mark.timing
@pytest.mark.slow
@pytest.mark.timeout(rounds(180, 3600))
@pytest.mark.parametrize("way", [way for way in WAYS if TIMES[way]])
def test_no_verdict_of_a_day_is_wrong(
    driver: Driver, tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with bursts(os.cpu_count() or 1):
        judged = list(day(tmp_path, times=TIMES[way], ways=[way], device="vulkan", seconds=rounds(1, 4) / 2))
    with capsys.disabled():
        print(f"\n{table(judged)}")
    assert len(judged) == TIMES[way] * 2 * len(KERNELS)
    assert not [judgement for judgement in judged if judgement.outcome == "wrong"]


@pytest.mark.parametrize(
    ("ratio", "verdict", "outcome"),
    [
        (1.0, "SAME", "right"),
        (1.0, "SLOWER", "wrong"),
        (1.07, "SLOWER", "right"),
        (1.07, "SAME", "wrong"),
        (1.07, "FASTER", "wrong"),
        (1.07, "UNCLEAR", "UNCLEAR"),
    ],
)
def test_a_verdict_is_right_by_what_was_planted(ratio: float, verdict: str, outcome: str) -> None:
    assert Judged("memory", "single", ratio, verdict, "").outcome == outcome
