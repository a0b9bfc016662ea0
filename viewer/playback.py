"""The time that a shader gets: it runs with the host's clock, stands still, or is moved by hand."""

from __future__ import annotations

from typing import Final

STEP: Final = 1 / 60
"""Seconds that a single step takes."""

_MAX_DELTA: Final = 0.25


class Playback:
    """Time and number of the frames.

    Calling sequence: ``advance`` at the begin of each frame; anything else between two frames.

    Attributes:
        time: the time of the current frame, in seconds.
        delta: the seconds since the frame before, on the same clock; 0 while it stands still.
        frame: the number of the current frame.
        paused: whether the time stands still.
        rate: the frames a second, smoothed.
    """

    def __init__(self) -> None:
        self.time: float = 0.0
        self.delta: float = 0.0
        self.frame: int = -1
        self.paused: bool = False
        self.rate: float = 60.0
        self._last: float | None = None
        self._steps = 0
        self._moved = True

    def advance(self, now: float) -> bool:
        """Advances to the next frame; ``now`` is the host's clock in seconds.

        Returns:
            Whether there is a frame to draw: while the time stands still, only after a step or a seek.
        """
        passed = 0.0 if self._last is None else now - self._last
        self._last = now
        if passed:
            self.rate += 0.1 * (1 / passed - self.rate)
        moved, self._moved = self._moved, False
        if self._steps:
            self.delta = self._steps * STEP
            self._steps = 0
        elif self.paused:
            self.delta = 0.0
            if not moved:
                return False
        else:
            # A frame that took long, as while the shader was suspended, is not a jump in time.
            self.delta = min(passed, _MAX_DELTA)
        self.time = max(0.0, self.time + self.delta)
        self.frame += 1
        return True

    def step(self, count: int) -> None:
        """Pauses, and moves by ``count`` frames of 1/60 s, backwards if it is negative."""
        self.paused = True
        self._steps += count

    def seek(self, seconds: float) -> None:
        """Moves by ``seconds``, backwards if it is negative, down to 0."""
        self.time = max(0.0, self.time + seconds)
        self._moved = True

    def redraw(self) -> None:
        """Redraws the frame although time stands still, since the picture has changed."""
        self._moved = True

    def restart(self) -> None:
        """Goes to time 0 and frame 0."""
        self.time, self.frame, self._steps = 0.0, -1, 0
        self._last = None
        self._moved = True
