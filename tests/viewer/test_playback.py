"""The time that shaders see, and their mouse."""

from __future__ import annotations

import pytest

from pumice.viewer.overlay import FrameTimes
from pumice.viewer.playback import STEP, Playback
from pumice.viewer.uniforms import Mouse


def test_time_runs_with_the_clock() -> None:
    playback = Playback()
    assert [playback.advance(now) for now in (100.0, 100.1, 100.3)] == [True, True, True]
    assert (playback.time, playback.delta, playback.frame) == (pytest.approx(0.3), pytest.approx(0.2), 2)


def test_a_long_gap_is_no_jump() -> None:
    playback = Playback()
    playback.advance(0.0)
    playback.advance(60.0)
    assert playback.time == 0.25


def test_paused_it_stands_still_and_steps() -> None:
    playback = Playback()
    playback.advance(0.0)
    playback.advance(0.1)
    playback.paused = True
    assert not playback.advance(0.2)
    playback.step(1)
    playback.step(1)
    assert playback.advance(0.3)
    assert (playback.time, playback.delta, playback.frame) == (pytest.approx(0.1 + 2 * STEP), 2 * STEP, 2)
    assert not playback.advance(0.4)
    playback.redraw()
    assert playback.advance(0.5) and playback.delta == 0
    playback.paused = False
    playback.advance(0.6)
    assert playback.time == pytest.approx(0.2 + 2 * STEP)  # the pause does not count


def test_steps_back_end_at_zero() -> None:
    playback = Playback()
    playback.advance(0.0)
    playback.step(-1)
    assert playback.advance(0.1) and playback.time == 0 and playback.paused


def test_seeking_and_restarting() -> None:
    playback = Playback()
    playback.paused = True
    playback.advance(0.0)
    playback.seek(10)
    assert playback.advance(0.1) and playback.time == 10
    playback.seek(-99)
    assert playback.advance(0.2) and playback.time == 0
    playback.seek(5)
    playback.advance(0.3)
    playback.restart()
    assert playback.advance(0.4) and (playback.time, playback.frame) == (0, 0)


def test_the_mouse_is_shadertoys() -> None:
    mouse = Mouse()
    mouse.move(5, 5)  # the button is up
    assert mouse.values(100, is_upward=False) == (0, 0, 0, 0)
    mouse.press(10, 20)
    assert mouse.values(100, is_upward=False) == (10, 20, 10, 20)
    mouse.move(30, 40)
    assert mouse.values(100, is_upward=False) == (30, 40, 10, -20)
    assert mouse.values(100, is_upward=True) == (30, 60, 10, -80)
    mouse.release()
    mouse.move(1, 1)
    assert mouse.values(100, is_upward=False) == (30, 40, -10, -20)


def test_percentiles_are_of_the_last_frames() -> None:
    times = FrameTimes()
    assert times.rows() == []
    times.add("GPU", 1000.0)
    for value in range(1, 241):
        times.add("GPU", value)
    times.add("frame", 2.0)
    (first, _), (second, (last, median, _, highest)) = times.rows()
    assert (first, second, last, median) == ("frame", "GPU", 240, 120.5)
    assert 237 < highest < 240
