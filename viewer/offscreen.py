"""Frames without a window: the same on each run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .picture import Picture, Size, pixels_of
from .renderer import Renderer
from .uniforms import Uniforms

if TYPE_CHECKING:
    import numpy as np


def render(picture: Picture, size: Size, frames: int, rate: float = 60.0) -> Iterator[np.ndarray]:
    """Yields the frames of a picture, as arrays of shape (height, width, 4), uint8.

    Time advances by 1 / ``rate`` a frame, the date is the first moment of 2000, and the mouse rests at (0, 0).

    Raises:
        DataLossError: the driver cut the loops of the shader (docs/trusting-results.md).
    """
    picture.resize(size)
    with Renderer(picture.device) as renderer:
        for frame in range(frames):
            time = frame / rate
            delta = 1 / rate if frame else 0.0
            renderer.draw(
                picture,
                Uniforms(time=time, delta=delta, frame=frame, rate=rate, date=(2000.0, 0.0, 1.0, time)),
                timed=False,
            )
            picture.image.wait()
            yield pixels_of(picture)
