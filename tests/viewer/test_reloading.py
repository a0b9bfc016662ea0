"""Shaders that are made anew when a file is saved; the pictures are made up."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from pumice.status import InvalidArgumentError
from pumice.viewer.picture import Picture
from pumice.viewer.reloading import Reloader


class Made:
    """Stands for a picture of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Shader:
    """A file, and what is made of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "a.frag"
        self.made: list[Made] = []
        self.now = 0.0
        self.write('#include "b.glsl"\n')

    def make(self) -> Picture:
        text = self.path.read_text()
        if "wrong" in text:
            raise InvalidArgumentError("it is wrong", location="a.frag:1")
        self.made.append(Made(text))
        return cast("Picture", self.made[-1])

    def write(self, text: str) -> None:
        """As editors do: another file takes the place of the old one."""
        beside = self.path.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self.path)

    def poll(self, reloader: Reloader, until: Callable[[Picture | None], bool]) -> Picture | None:
        """Polls at later and later times until something holds."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            self.now += 1
            found = reloader.poll(self.now)
            if until(found):
                return found
            time.sleep(0.005)
        raise AssertionError("it did not come")


@pytest.fixture
def shader(tmp_path: Path) -> Shader:
    (tmp_path / "b.glsl").write_text("// 1\n")
    return Shader(tmp_path)


def test_it_is_made_anew_when_it_or_what_it_includes_is_saved(shader: Shader) -> None:
    with Reloader(shader.path, shader.make) as reloader:
        assert [reloader.poll(n) for n in range(5)] == [None] * 5 and not shader.made
        shader.write('// first\n#include "b.glsl"\n')
        found = shader.poll(reloader, lambda found: found is not None)
        assert cast("Made", found).text.startswith("// first")
        shader.path.with_name("b.glsl").write_text("// another\n")
        assert shader.poll(reloader, lambda found: found is not None) is cast("Picture", shader.made[1])
        assert reloader.poll(shader.now + 1) is None


def test_errors_are_kept_until_it_is_mended(shader: Shader) -> None:
    with Reloader(shader.path, shader.make) as reloader:
        shader.write("wrong, and long enough\n")
        shader.poll(reloader, lambda _: reloader.failure is not None)
        assert reloader.failure is not None and reloader.failure.location == "a.frag:1" and not shader.made
        shader.write("mended\n")
        shader.poll(reloader, lambda found: found is not None)
        assert reloader.failure is None


def test_a_file_that_is_gone_is_waited_for(shader: Shader) -> None:
    with Reloader(shader.path, shader.make) as reloader:
        shader.path.unlink()
        assert [reloader.poll(n) for n in range(5)] == [None] * 5
        shader.write("here again, otherwise\n")
        shader.poll(reloader, lambda found: found is not None)
    assert len(shader.made) == 1


def test_what_nobody_took_is_closed(shader: Shader) -> None:
    with Reloader(shader.path, shader.make) as reloader:
        shader.write("other text\n")
        shader.poll(reloader, lambda _: reloader._pending is not None)
    assert all(one.is_closed for one in shader.made) and shader.made
