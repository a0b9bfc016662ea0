"""Files of frames, read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pumice.status import InvalidArgumentError, UnavailableError
from pumice.viewer.movies import Gif, Mp4, PngFolder

image = pytest.importorskip("PIL.Image")

LEVELS = [10, 120, 250]


def frames(width: int = 32, height: int = 16) -> list[np.ndarray]:
    """Frames of one grey each, with a white corner."""
    made = []
    for level in LEVELS:
        frame = np.full((height, width, 4), level, np.uint8)
        frame[:4, :4] = frame[..., 3] = 255
        made.append(frame)
    return made


def test_pngs_are_numbered_and_exact(tmp_path: Path) -> None:
    with PngFolder(tmp_path / "a" / "b") as folder:
        for frame in frames():
            folder.add(frame)
    files = sorted((tmp_path / "a" / "b").iterdir())
    assert [file.name for file in files] == ["0000.png", "0001.png", "0002.png"]
    for file, frame in zip(files, frames(), strict=True):
        np.testing.assert_array_equal(np.asarray(image.open(file)), frame)


def test_a_folder_is_made_with_its_first_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(frame: np.ndarray) -> bytes:
        raise UnavailableError("no encoder here")

    monkeypatch.setattr("pumice.viewer.movies.encode_picture", unavailable)
    with PngFolder(tmp_path / "a") as folder, pytest.raises(UnavailableError):
        folder.add(frames()[0])
    assert not (tmp_path / "a").exists()


def test_gifs_last_as_long_as_their_frames(tmp_path: Path) -> None:
    with Gif(tmp_path / "a.gif", rate=30) as gif:
        for frame in frames():
            gif.add(frame)
    with image.open(tmp_path / "a.gif") as read:
        assert read.n_frames == 3
        lengths = []
        for number, level in enumerate(LEVELS):
            read.seek(number)
            lengths.append(read.info["duration"])
            pixels = np.asarray(read.convert("RGB"))
            assert abs(int(pixels[10, 20, 0]) - level) < 8 and pixels[0, 0, 0] > 240
    assert sum(lengths) == 100 and read.info["loop"] == 0


def test_mp4s_have_their_frames(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    with Mp4(tmp_path / "a.mp4", rate=24) as movie:
        for frame in frames():
            movie.add(frame)
    with av.open(str(tmp_path / "a.mp4")) as read:
        stream = read.streams.video[0]
        assert (stream.codec_context.name, stream.width, stream.height, stream.average_rate) == ("h264", 32, 16, 24)
        greys = [one.to_ndarray(format="rgb24")[12, 24, 0] for one in read.decode(video=0)]
    np.testing.assert_allclose(greys, LEVELS, atol=6)


def test_odd_sizes_are_no_mp4(tmp_path: Path) -> None:
    pytest.importorskip("av")
    with Mp4(tmp_path / "a.mp4", rate=24) as movie, pytest.raises(InvalidArgumentError, match="even"):
        movie.add(frames(31)[0])
