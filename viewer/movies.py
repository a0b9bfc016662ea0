"""Files of frames: numbered PNGs, a GIF, an MP4.

Calling sequence of each: ``with`` → ``add`` for each frame, arrays of one shape (height, width, 4), uint8.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.closeable import Closeable
from ..formats.picture import encode_picture
from ..status import InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    from PIL.Image import Image


class Movie(Closeable):
    """A sink that frames are written to."""

    @abstractmethod
    def add(self, frame: np.ndarray) -> None:
        """Takes the next frame."""


class PngFolder(Movie):
    """Files ``0000.png``, ``0001.png``, … in a folder, which is made with the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def add(self, frame: np.ndarray) -> None:
        picture = encode_picture(frame)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{self._count:04}.png").write_bytes(picture)
        self._count += 1

    def close(self) -> None:
        """Does nothing: each file is complete."""


class Gif(Movie):
    """A GIF that runs for ever, written when it is closed. GIFs count time in hundredths of a second."""

    def __init__(self, path: Path, rate: float) -> None:
        try:
            from PIL import Image
        except ModuleNotFoundError as error:
            raise UnavailableError("GIFs are written by Pillow: pip install 'pumice[images]'") from error
        self._image = Image
        self._path, self._rate = path, rate
        self._frames: list[Image.Image] = []

    def add(self, frame: np.ndarray) -> None:
        self._frames.append(self._image.fromarray(frame).convert("RGB").quantize())

    def close(self) -> None:
        """Writes it; idempotent."""
        frames, self._frames = self._frames, []
        if frames:
            ends = [round(100 * (number + 1) / self._rate) for number in range(len(frames))]
            lengths = [10 * (end - start) for start, end in zip([0, *ends], ends, strict=False)]
            frames[0].save(self._path, "GIF", save_all=True, append_images=frames[1:], duration=lengths, loop=0)


class Mp4(Movie):
    """An MP4 of H.264, as every player shows it; PyAV (the extra ``video``) encodes it."""

    def __init__(self, path: Path, rate: float) -> None:
        try:
            import av
        except ModuleNotFoundError as error:
            raise UnavailableError("MP4s are encoded by PyAV: pip install 'pumice[video]'") from error
        self._av = av
        self._container = av.open(str(path), "w", format="mp4")
        self._stream = self._container.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001))
        self._stream.pix_fmt = "yuv420p"
        self._count = 0

    def add(self, frame: np.ndarray) -> None:
        height, width = frame.shape[:2]
        if height % 2 or width % 2:
            raise InvalidArgumentError(
                f"an MP4's width and height are even, as its colours are stored for 2 x 2 pixels; got {width}x{height}"
            )
        if not self._count:
            self._stream.width, self._stream.height = width, height
        self._count += 1
        pixels = np.ascontiguousarray(frame[:, :, :3])
        self._container.mux(self._stream.encode(self._av.VideoFrame.from_ndarray(pixels, format="rgb24")))

    def close(self) -> None:
        """Completes it; idempotent."""
        if self._count:
            self._container.mux(self._stream.encode())
            self._count = 0
        self._container.close()
