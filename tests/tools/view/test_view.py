"""``pumice view``: the examples' pictures, files of frames, a window, and wrong usage."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from support.displays import display

from pumice.hal_vulkan.instance.driver import Driver
from pumice.tools.cli import main

image = pytest.importorskip("PIL.Image")

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "view"
STILL = "vec4 mainCompute(ivec2 p) { return vec4(vec2(p) / 255.0, AMOUNT, 1); }\n"


def view(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["view", *map(str, arguments)], prog_name="pumice")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PUMICE_DEVICE", "vulkan")
    (tmp_path / "a.comp").write_text(STILL)


def frames_of(folder: Path) -> list[np.ndarray]:
    return [np.asarray(image.open(path)).astype(int) for path in sorted(folder.iterdir())]


@pytest.mark.sample(2)
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("waves.frag", ()),
        ("ball.frag", ()),
        ("kaleidoscope.comp", ()),
        ("reaction.comp", ()),
        ("trails.frag", ("--channel", "0=previous")),
        ("plasma.mlir", ()),
    ],
)
def test_examples_move(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    file = ("--session", EXAMPLES / name) if name.endswith(".mlir") else (EXAMPLES / name,)
    done = view(*file, *options, "--offscreen", "--size", "96x64", "--frames", 3, "--fps", 4, "--png", tmp_path / "out")
    assert done.exit_code == 0, done.output
    frames = frames_of(tmp_path / "out")
    size = (180, 320, 4) if name.endswith(".mlir") else (64, 96, 4)
    assert [frame.shape for frame in frames] == [size] * 3 and f"3 frame(s) of {size[1]}x{size[0]}" in done.stderr
    assert all(len(np.unique(frame.reshape(-1, 4), axis=0)) > 1 for frame in frames)  # there is a picture
    for one, next_one in zip(frames, frames[1:], strict=False):
        moved = np.abs(one - next_one).max(-1) > 2
        assert moved.mean() > 0.001, "nothing moves"


def test_the_examples_are_all_tried() -> None:
    names = {path.name for path in EXAMPLES.iterdir()} - {"plasma.py"}
    assert names == {"waves.frag", "ball.frag", "kaleidoscope.comp", "reaction.comp", "trails.frag", "plasma.mlir"}


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_files_are_written_without_glfw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("av")
    monkeypatch.setitem(sys.modules, "glfw", None)
    arguments = ("a.comp", "-D", "AMOUNT=0.2", "--offscreen", "--frames", 2, "--size", "16x8")
    done = view(*arguments, "--png", "one", "--gif", "a.gif", "--mp4", "a.mp4")
    assert done.exit_code == 0, done.output
    assert view(*arguments, "--png", "two").exit_code == 0
    assert all(Path(name).stat().st_size > 100 for name in ("a.gif", "a.mp4"))
    for name in ("0000.png", "0001.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    wanted = np.zeros((8, 16, 4), int)
    wanted[..., 1], wanted[..., 0] = np.mgrid[0:8, 0:16]
    wanted[..., 2:] = 51, 255
    np.testing.assert_array_equal(frames_of(tmp_path / "one")[0], wanted)
    shown = view("a.comp", "-D", "AMOUNT=1")
    assert shown.exit_code == 1 and "pip install 'pumice[view]', or --offscreen" in shown.stderr


@pytest.mark.vulkan
def test_a_window_closes_by_itself_and_tells_of_its_frames(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("glfw")
    with display() as name:
        monkeypatch.setenv("DISPLAY", name)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        done = view("a.comp", "-D", "AMOUNT=1", "--size", "64x48", "--seconds", 0.5, "--no-vsync")
    assert done.exit_code == 0, done.output
    lines = done.stderr.splitlines()
    assert lines[0] == f"showing a.comp on {driver.profiles[driver.select('vulkan')].name}"
    names = [line.split(":")[0] for line in lines[1:]]
    assert names == [name for name in ("frame", "GPU", "latency", "present") if name in names] and "present" in names


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_what_is_wrong_with_a_shader_is_said_with_its_line() -> None:
    Path("a.comp").write_text("\n" + STILL)
    done = view("a.comp", "--offscreen", "--png", "out")
    assert done.exit_code == 1 and "a.comp:2: 'AMOUNT' : undeclared" in done.stderr


OFF = ("--offscreen", "--png", "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected one of FILE and --session"),
        (("a.comp", "--session", "b.vmfb"), "expected one of FILE and --session"),
        (("none.frag",), "no such file: none.frag"),
        (("a.comp", "--function", "f"), "--function is for programs"),
        (("--session", "a.comp", "--shown", "x"), "--shown is for shaders"),
        (("--session", "a.comp", "--push", "x=1"), "--push is for shaders"),
        (("--session", "a.comp", "--language", "glsl"), "--language is for shaders"),
        (("--session", "a.comp", "-D", "X"), "--define is for shaders"),
        (("--session", "a.comp", "-I", "."), "--include is for shaders"),
        (("--session", "a.comp", "--channel", "0=previous"), "--channel is for shaders"),
        (("a.comp", "--push", "x"), "expected NAME=VALUE"),
        (("a.comp", "--push", "x=1", "--push", "x=2"), "each name once"),
        (("a.comp", "--push", "x=one"), "expected a number or a list"),
        (("a.comp", "--size", "0x4"), "--size: expected WIDTHxHEIGHT"),
        (("a.comp", "--size", "wide"), "--size: expected WIDTHxHEIGHT"),
        (("a.comp", "--channel", "4=previous"), "expected a number from 0 to 3"),
        (("a.comp", "--channel", "0=none.png"), "no such file: none.png"),
        (("a.comp", "--offscreen"), "needs somewhere to write"),
        (("a.comp", "--gif", "a.gif"), "--gif goes with --offscreen"),
        (("a.comp", "--frames", "3"), "--frames goes with --offscreen"),
        (("a.comp", "-D", "1X", *OFF), "expected NAME or NAME=VALUE"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    done = view(*arguments)
    assert done.exit_code == 2 and message in done.stderr, done.output
