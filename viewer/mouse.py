"""Shadertoy's ``iMouse``."""

from __future__ import annotations


class Mouse:
    """The positions where the button was last down and last pressed.

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
