"""Real windows, on an X server without a screen: what the display shows is compared with the picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.displays import display, screen

import pumice.hal_vulkan.presentation.swapchain as swapchain_module
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.presentation import Swapchain
from pumice.runtime.device import Device
from pumice.status import UnavailableError
from pumice.viewer import ShaderPicture, Window, pixels_of
from pumice.viewer.reloading import Reloader

glfw = pytest.importorskip("glfw")
pytest.importorskip("PIL")

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(10)]

SIZE = (160, 100)
TEXT = """void mainImage(out vec4 color, in vec2 position) {
    color = vec4(position / 255.0, fract(iTime), 1.0);
}
"""
BLUE = 2


@pytest.fixture(scope="module")
def x_display() -> Iterator[str]:
    with display() as name:
        yield name


class Windows:
    """Opens windows on a shader in a file."""

    def __init__(self, path: Path, shown_on: str) -> None:
        self.path, self.display = path, shown_on
        path.write_text(TEXT)

    def make(self, device: Device) -> ShaderPicture:
        return ShaderPicture(device, self.path)

    def open(self, **options: Any) -> Window:
        settings = {"title": self.path.name, "size": SIZE, "device": "vulkan", "has_overlay": False}
        window = Window(self.make, **settings | options)
        # As a window manager would; without one a window is where the server puts it.
        glfw.set_window_pos(window._window, 0, 0)
        return window

    def seen(self, window: Window, wanted: Callable[[np.ndarray], bool] | None = None) -> np.ndarray:
        """What the display shows of a window, once that is wanted; else what it shows after some seconds."""
        end = time.monotonic() + 10
        while True:
            width, height = window._pixels()
            pixels = screen(self.display)[:height, :width]
            if wanted is None or wanted(pixels) or time.monotonic() > end:
                return pixels
            window.frame()


@pytest.fixture
def windows(driver: Driver, x_display: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Windows:
    monkeypatch.setenv("DISPLAY", x_display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("XDG_SESSION_TYPE", raising=False)
    return Windows(tmp_path / "a.frag", x_display)


def expected(window: Window) -> np.ndarray:
    return pixels_of(window.picture)[..., :3]


def show(window: Window, count: int = 3) -> None:
    """Shows frames; the last one stays, as time stands still."""
    for _ in range(count):
        window.frame()
    window.playback.paused = True
    window.frame()


def press(window: Window, key: int, mods: int = 0) -> None:
    window._key(None, key, 0, glfw.PRESS, mods)


def test_the_display_shows_the_picture(windows: Windows) -> None:
    with windows.open() as window:
        show(window)
        assert window.picture.size == SIZE and window.shown >= 3
        pixels = windows.seen(window, lambda seen: np.array_equal(seen, expected(window)))
        np.testing.assert_array_equal(pixels, expected(window))
        assert [name for name, _ in window.times.rows()] == ["frame", "GPU", "latency", "present"]


def test_frame_times_stand_over_it(windows: Windows) -> None:
    with windows.open(size=(400, 200), has_overlay=True) as window:
        show(window, 6)
        panel = window._panel
        assert panel is not None
        height, width = panel.shape[:2]
        wanted = expected(window).copy()
        wanted[:height, :width] = panel.numpy()[..., :3]
        np.testing.assert_array_equal(windows.seen(window, lambda seen: np.array_equal(seen, wanted)), wanted)
        press(window, glfw.KEY_O)
        window.frame()
        np.testing.assert_array_equal(
            windows.seen(window, lambda seen: np.array_equal(seen, expected(window))), expected(window)
        )


def reload_until(window: Window, reloader: Reloader, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        window.reload(reloader)
        window.frame()


def test_a_saved_shader_is_shown_and_a_wrong_one_is_not(windows: Windows) -> None:
    with (
        windows.open(size=(400, 200)) as window,
        Reloader(windows.path, lambda: windows.make(window.device)) as reloader,
    ):
        window.playback.seek(5)
        show(window, 2)
        windows.path.write_text(TEXT.replace("position / 255.0", "missing"))
        reload_until(window, reloader, lambda: bool(window.messages))
        assert "a.frag:2" in window.messages["shader"] and "missing" in window.messages["shader"]

        def has_message(seen: np.ndarray) -> bool:
            red = (seen[..., 0] > 200) & (seen[..., 1] < 160) & (seen[..., 2] < 160)
            return bool(red[:100].sum() > 50)

        seen = windows.seen(window, has_message)
        assert has_message(seen)
        np.testing.assert_array_equal(seen[150:], expected(window)[150:])  # the last good one goes on below
        windows.path.write_text(TEXT.replace("position / 255.0", "vec2(1.0)"))
        before = window.playback.time, window.playback.frame
        reload_until(window, reloader, lambda: not window.messages)
        window.frame()
        assert (window.playback.time, window.playback.frame) == (before[0], before[1] + 1) and before[0] > 5
        seen = windows.seen(window, lambda seen: (seen[..., :2] == 255).all())
        assert (seen[..., :2] == 255).all()


def test_resizing(windows: Windows) -> None:
    with windows.open() as window:
        window.frame()
        for size in ((200, 50), (33, 77), (300, 200)):
            glfw.set_window_size(window._window, *size)
            end = time.monotonic() + 10
            while (window.picture.size, window._swapchain.size) != (size, size):
                assert time.monotonic() < end
                window.frame()
            window.playback.paused = True
            window.playback.redraw()
            window.frame()
            pixels = windows.seen(window, lambda seen: np.array_equal(seen, expected(window)))
            np.testing.assert_array_equal(pixels, expected(window))


def test_without_an_area_nothing_is_shown_and_nothing_hangs(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    with windows.open() as window:
        assert window.frame()
        with monkeypatch.context() as patch:
            patch.setattr(window, "_pixels", lambda: (0, 0))
            assert not window.frame()
        # The window system may know before GLFW does.
        with monkeypatch.context() as patch:
            patch.setattr(swapchain_module, "_extent", lambda *_: (0, 0))
            patch.setattr(Swapchain, "_acquire", lambda *_: swapchain_module._OUT_OF_DATE)
            assert not window.frame() and window._swapchain.size == (0, 0)
            assert not window.frame()
        assert window.frame() and window._swapchain.size == SIZE


def test_a_surface_without_a_size_has_that_of_the_window(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Wayland, where nothing is out of date when the window was resized."""
    with windows.open() as window:
        functions = window.device.vulkan.driver.functions
        real = functions.vkGetPhysicalDeviceSurfaceCapabilitiesKHR

        def without_size(device: Any, surface: Any, capabilities: Any) -> int:
            result = real(device, surface, capabilities)
            capabilities.currentExtent.width = capabilities.currentExtent.height = 0xFFFF_FFFF
            return int(result)

        monkeypatch.setattr(functions, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR", without_size)
        window._close_surface()
        window._open_surface()
        assert window.frame() and window._swapchain.size == SIZE
        made: list[int] = []
        monkeypatch.setattr(window._swapchain, "_window_size", lambda: (50, 40))
        monkeypatch.setattr(window._swapchain, "_make", lambda: made.append(1))
        assert not window.frame() and made


@pytest.mark.sample(2)
@pytest.mark.parametrize("call", ["vkAcquireNextImageKHR", "vkQueuePresentKHR"])
@pytest.mark.parametrize("result", ["_OUT_OF_DATE", "_SUBOPTIMAL", "_SURFACE_LOST"])
def test_what_the_window_system_answers_is_taken(
    windows: Windows, monkeypatch: pytest.MonkeyPatch, call: str, result: str
) -> None:
    """The answers are made up after the call was made, but for those after which it acquires nothing."""
    with windows.open() as window:
        show(window)
        functions = window.device.vulkan.fn
        real, answers = getattr(functions, call), [getattr(swapchain_module, result)]

        def answer(*arguments: Any) -> int:
            if not answers:
                return int(real(*arguments))
            if answers[0] == swapchain_module._SUBOPTIMAL or call == "vkQueuePresentKHR":
                real(*arguments)
            return int(answers.pop())

        monkeypatch.setattr(functions, call, answer)
        surface = window._surface
        window.frame()
        window.playback.redraw()
        assert window.frame()
        assert (window._surface is surface) == (result != "_SURFACE_LOST")
        np.testing.assert_array_equal(
            windows.seen(window, lambda seen: np.array_equal(seen, expected(window))), expected(window)
        )


def test_keys(windows: Windows, tmp_path: Path) -> None:
    with windows.open(screenshots=tmp_path) as window:
        window.frame()
        playback = window.playback
        press(window, glfw.KEY_SPACE)
        assert playback.paused and not window.frame()
        begun = playback.time
        press(window, glfw.KEY_PERIOD)
        assert window.frame() and playback.time == pytest.approx(begun + 1 / 60)
        press(window, glfw.KEY_COMMA)
        press(window, glfw.KEY_RIGHT, glfw.MOD_SHIFT)
        assert window.frame() and playback.time == pytest.approx(begun + 10)
        press(window, glfw.KEY_S)
        (path,) = tmp_path.glob("a-*.png")
        from PIL import Image

        np.testing.assert_array_equal(np.asarray(Image.open(path))[..., :3], expected(window))
        window._screenshots = tmp_path / "none"
        press(window, glfw.KEY_S)
        assert "none" in window.messages["screenshot"]
        press(window, glfw.KEY_HOME)
        assert window.frame() and (playback.time, playback.frame) == (0, 0)
        press(window, glfw.KEY_Q)
        window.run()  # ends at once


def test_full_screen_and_back(windows: Windows) -> None:
    with windows.open() as window:
        for size in ((640, 480), SIZE):
            press(window, glfw.KEY_F)
            end = time.monotonic() + 10
            while window.picture.size != size:
                assert time.monotonic() < end
                window.frame()


def test_the_mouse_is_in_pixels_of_the_picture(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    windows.path.write_text("void mainImage(out vec4 c, in vec2 p) { c = iMouse / 255.0; }")
    with windows.open() as window:
        monkeypatch.setattr(glfw, "get_cursor_pos", lambda _: (10.0, 30.0))
        window._button(window._window, glfw.MOUSE_BUTTON_LEFT, glfw.PRESS, 0)
        window._moved(None, 20.0, 40.0)
        window.frame()
        assert expected(window)[0, 0].tolist() == [20, 60, 10]
        window._button(window._window, glfw.MOUSE_BUTTON_LEFT, glfw.RELEASE, 0)
        window._moved(None, 50.0, 50.0)
        window.frame()
        assert expected(window)[0, 0].tolist() == [20, 60, 0]


def test_a_program_is_shown_in_a_window(windows: Windows) -> None:
    from pumice import compile
    from pumice.viewer import ProgramPicture
    from pumice.vm.execution.bytecode_module import BytecodeModule

    text = """func.func public @f(%t: tensor<f32>) -> tensor<4x8x4xf32> {
        %c = stablehlo.constant dense<[1.0, 0.4, 0.0, 1.0]> : tensor<4xf32>
        %r = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<4xf32>) -> tensor<4x8x4xf32>
        return %r : tensor<4x8x4xf32>
    }"""
    module = BytecodeModule.from_bytes(compile(text), "m")
    with Window(
        lambda device: ProgramPicture(device, module, "f"), title="m", size=SIZE, device="vulkan", has_overlay=False
    ) as window:
        glfw.set_window_pos(window._window, 0, 0)
        show(window)
        seen = windows.seen(window, lambda seen: (seen == (255, 102, 0)).all())
        assert (seen == (255, 102, 0)).all()


def test_without_a_display_there_is_no_window(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":65000")
    with pytest.raises(UnavailableError, match=r"no display was found .*--offscreen"):
        windows.open()


def test_glfw_uses_the_vulkan_library_that_pumice_loaded(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[int] = []
    real = glfw.init_vulkan_loader

    def noted(address: int) -> None:
        addresses.append(address)
        real(address)

    monkeypatch.setattr(glfw, "init_vulkan_loader", noted)
    with windows.open() as window:
        assert window.frame()
        (address,) = addresses
        with windows.open() as beside:  # whose library is ready: it neither chooses another nor ends it
            assert beside.frame()
        assert addresses == [address] and window.frame()


def test_glfw_before_34_finds_the_vulkan_library_itself(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(glfw, "init_vulkan_loader")
    with windows.open() as window:
        assert window.frame()
