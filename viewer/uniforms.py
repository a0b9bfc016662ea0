"""The values that a shader gets for a frame: Shadertoy's uniforms, and the mouse among them."""

from __future__ import annotations

import struct
from typing import Final

from ..base.lazy_dataclass import dataclass

# std140, as in source.py: vec3 and float, two vec4, three floats and an int; arrays of four in steps of 16 bytes.
_HEAD: Final = struct.Struct("<3ff4f4f3fi")
_QUAD: Final = struct.Struct("<4f")
_SAMPLE_RATE: Final = 44100.0
UNIFORM_BYTES: Final = _HEAD.size + 8 * _QUAD.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniforms:
    """Shadertoy's values for one frame.

    Attributes:
        time: the seconds since the start, without pauses.
        delta: the seconds since the frame before.
        frame: the number of the frame, from 0.
        rate: the frames a second.
        mouse: the x and y where the button was last down, then the x and y of the last click: the first is negative
            while the button is up, the second except in the first frame of a click. In pixels, in the shader's own
            direction of y.
        date: the year, month from 0, day, and seconds of the day.
    """

    time: float = 0.0
    delta: float = 0.0
    frame: int = 0
    rate: float = 60.0
    mouse: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    date: tuple[float, float, float, float] = (2000.0, 0.0, 1.0, 0.0)

    def pack(self, size: tuple[int, int], channels: tuple[tuple[int, int], ...]) -> bytes:
        """Returns the bytes of the uniform block for a picture of a size (width, height) and for the sizes of its
        channels.
        """
        head = _HEAD.pack(
            *map(float, size), 1.0, self.time, *self.mouse, *self.date, self.delta, self.rate, _SAMPLE_RATE, self.frame
        )
        times = _QUAD.pack(self.time, 0, 0, 0) * 4
        return head + times + b"".join(_QUAD.pack(*map(float, channel), 1.0, 0.0) for channel in channels)

    def named(self, size: tuple[int, int]) -> dict[str, int | float | tuple[float, ...]]:
        """Returns the values by Shadertoy's names, but for those of channels."""
        return {
            "iResolution": (float(size[0]), float(size[1]), 1.0),
            "iTime": self.time,
            "iTimeDelta": self.delta,
            "iFrame": self.frame,
            "iFrameRate": self.rate,
            "iSampleRate": _SAMPLE_RATE,
            "iMouse": self.mouse,
            "iDate": self.date,
        }


NAMES: Final = frozenset(Uniforms().named((0, 0)))


class Mouse:
    """Shadertoy's ``iMouse``: the positions where the button was last down and last pressed.

    Attributes:
        down: whether the button is down.
    """

    def __init__(self) -> None:
        self.down: bool = False
        self._place = (0.0, 0.0)
        self._click = (0.0, 0.0)
        self._is_new = False

    def press(self, x: float, y: float) -> None:
        """Notes a press of the button at a pixel, counted from the upper left."""
        self.down = self._is_new = True
        self._place = self._click = (x, y)

    def move(self, x: float, y: float) -> None:
        """Notes a move of the mouse, which counts while the button is down."""
        if self.down:
            self._place = (x, y)

    def release(self) -> None:
        self.down = False

    def values(self, height: int, *, is_upward: bool) -> tuple[float, float, float, float]:
        """Returns the uniform for the next frame of a picture of a height."""

        def upright(position: tuple[float, float]) -> tuple[float, float]:
            return (position[0], height - position[1]) if is_upward else position

        (x, y), (click_x, click_y) = upright(self._place), upright(self._click)
        is_new, self._is_new = self._is_new, False
        return x, y, click_x if self.down else -click_x, click_y if is_new else -click_y
