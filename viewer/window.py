"""A window with a picture, live. Its keys are in docs/view.md; GLFW (the extra ``view``) makes it.

Calling sequence: ``Window(…)`` → ``run``, or ``frame`` as often as frames are wanted → ``close``.

Thread rule: the main thread, which window systems want.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..base.closeable import Closeable
from ..formats.picture import encode_picture
from ..hal_vulkan import Device as VulkanDevice
from ..hal_vulkan import Driver, PlanOptions
from ..hal_vulkan.presentation import Layer, Surface, Swapchain, loader_address, window_drivers
from ..runtime import DeviceImage
from ..runtime.device import Device
from ..status import PumiceError, UnavailableError
from .overlay import FrameTimes, Overlay
from .picture import Picture, pixels_of
from .playback import Playback
from .reloading import Reloader
from .renderer import Renderer
from .uniforms import Mouse, Uniforms

_IDLE_SECONDS: Final = 0.05
_OVERLAY_SECONDS: Final = 0.25
_TIME_EVERY: Final = 16  # frames, without the overlay
_SURFACE_LOST: Final = "VK_ERROR_SURFACE_LOST_KHR"


class Window(Closeable):
    """Shows a picture.

    Attributes:
        picture: the picture that it shows.
        playback: the picture's time.
        times: the times of the last frames.
        messages: the texts over the picture, by topic.
        has_overlay: whether frame times stand over the picture.
        shown: the number of frames that were shown.
    """

    def __init__(
        self,
        make: Callable[[Device], Picture],
        *,
        title: str,
        size: tuple[int, int] = (960, 540),
        device: str | None = None,
        validation: bool | None = None,
        vsync: bool = True,
        has_overlay: bool = True,
        screenshots: Path = Path(),
    ) -> None:
        """Opens a window.

        Args:
            make: a function that makes the picture on the window's device.
            title: the title of the window, with which names of screenshots begin.
            size: the width and height of the window.
            device: the device, as for ``open_device``; it must be able to show images.
            validation: whether to turn validation on, as for ``open_device``.
            vsync: whether to wait for the display's refresh.
            has_overlay: whether to show frame times from the start.
            screenshots: the folder for screenshots.

        Raises:
            UnavailableError: there is no GLFW, no display, or no device that can show images there.
        """
        self._glfw = glfw = _glfw()
        self._title, self._screenshots, self._vsync = title, screenshots, vsync
        self._closers = contextlib.ExitStack()
        self.has_overlay: bool = has_overlay
        self.messages: dict[str, str] = {}
        self.playback: Playback = Playback()
        self.times: FrameTimes = FrameTimes()
        self.shown: int = 0
        self.is_closed: bool = False
        self._mouse = Mouse()
        self._panel: DeviceImage | None = None
        self._panel_text: object = None
        self._panel_due = 0.0
        self._windowed: tuple[int, int, int, int] | None = None
        self._begun = 0.0
        try:
            glfw.get_time()
            is_others = glfw.get_error()[0] != glfw.NOT_INITIALIZED  # another library's windows may be open
            if not is_others and hasattr(glfw, "init_vulkan_loader"):  # since 3.4
                glfw.init_vulkan_loader(loader_address())
            _check(glfw.init(), glfw, "no display was found")
            if not is_others:
                self._closers.callback(glfw.terminate)
            with window_drivers():
                if not glfw.vulkan_supported():
                    raise UnavailableError("GLFW finds no Vulkan driver; `pumice devices` says what pumice finds")
                extensions = glfw.get_required_instance_extensions()
            _check(extensions, glfw, "no Vulkan driver of this machine shows images on this display")
            driver = Driver(validation=validation, extensions=extensions)
            self._closers.callback(driver.close)
            hal = VulkanDevice(driver, driver.select(device), options=PlanOptions(presentation=True))
            self.device: Device = Device(hal)
            self._closers.callback(self.device.close)
            glfw.default_window_hints()
            glfw.window_hint(glfw.CLIENT_API, glfw.NO_API)
            self._window = glfw.create_window(*size, f"{title} - pumice", None, None)
            _check(self._window, glfw, "the window was not made")
            self._closers.callback(lambda: glfw.destroy_window(self._window))
            # Asked for once, as it may take an answer of the display's server.
            width, height = glfw.get_framebuffer_size(self._window)
            self._framebuffer = width, height
            glfw.set_framebuffer_size_callback(self._window, self._size_changed)
            self._open_surface()
            self._closers.callback(self._close_surface)
            self._overlay = Overlay(glfw.get_window_content_scale(self._window)[0] or 1.0)
            self.picture: Picture = make(self.device)
            self._closers.callback(self._close_picture)
            self._resized = self._pixels() if all(self._pixels()) else size
            self.picture.resize(self._resized, self._swapchain.format)
            self._renderer = Renderer(self.device)
            self._closers.callback(self._renderer.close)
            glfw.set_key_callback(self._window, self._key)
            glfw.set_mouse_button_callback(self._window, self._button)
            glfw.set_cursor_pos_callback(self._window, self._moved)
            glfw.set_scroll_callback(self._window, lambda _, x, y: self.playback.seek(y / 10))
        except BaseException:
            self.close()
            raise

    def _open_surface(self) -> None:
        glfw, hal = self._glfw, self.device.vulkan

        def create(instance: Any, handle: Any) -> int:
            return int(glfw.create_window_surface(instance, self._window, None, handle))

        self._surface = Surface(hal.driver, create)
        try:
            self._swapchain = Swapchain(hal, self._surface, self._pixels, vsync=self._vsync)
        except BaseException:
            self._surface.close()
            raise

    def _close_surface(self) -> None:
        self._swapchain.close()
        self._surface.close()

    def _close_picture(self) -> None:
        self.picture.close()

    def _pixels(self) -> tuple[int, int]:
        return self._framebuffer

    def _size_changed(self, _window: object, width: int, height: int) -> None:
        self._framebuffer = width, height

    # -- frames --------------------------------------------------------------------------------------

    def run(self, reloader: Reloader | None = None, *, seconds: float | None = None) -> None:
        """Shows frames until the window is closed, or for some seconds.

        Args:
            reloader: the reloader that tells when there is a new version of the picture.
            seconds: the time to run for in seconds; ``None`` is for ever.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not self._glfw.window_should_close(self._window) and (end is None or time.monotonic() < end):
            if reloader is not None:
                self.reload(reloader)
            if not self.frame():  # nothing is shown, or nothing moves
                self._glfw.wait_events_timeout(_IDLE_SECONDS)

    def reload(self, reloader: Reloader) -> None:
        """Takes the reloader's result: a new version of the picture, or the reason for none."""
        made = reloader.poll(time.monotonic())
        if made is not None:
            before, self.picture = self.picture, made
            made.take_over(before)
            made.resize(self._resized, self._swapchain.format)
            before.close()
            self.playback.redraw()
        self._say("shader", reloader.failure)

    def _say(self, about: str, failure: PumiceError | OSError | None) -> None:
        """Shows a failure over the picture, or removes it."""
        if failure is None:
            self.messages.pop(about, None)
        elif isinstance(failure, PumiceError):
            self.messages[about] = f"{failure.location}: {failure.message}" if failure.location else failure.message
        else:
            self.messages[about] = str(failure)

    def frame(self) -> bool:
        """Handles events and shows the next frame; returns whether one was drawn and shown."""
        self._glfw.poll_events()
        pixels = self._pixels()
        if 0 in pixels:  # minimised
            return False
        if pixels != self._resized:
            self._resized = pixels
            self.picture.resize(pixels, self._swapchain.format)
            self.playback.redraw()
        begun = time.monotonic()
        is_drawn = self.playback.advance(begun)
        if is_drawn:
            self._draw(begun)
        presented = time.monotonic()
        is_shown = self._present(self._layers(begun))
        if is_drawn and is_shown:
            self.times.add("present", 1e3 * (time.monotonic() - presented))
        self.shown += is_shown
        return is_drawn and is_shown

    def _draw(self, begun: float) -> None:
        playback, picture = self.playback, self.picture
        now = datetime.datetime.now()
        seconds = now.hour * 3600 + now.minute * 60 + now.second + now.microsecond / 1e6
        uniforms = Uniforms(
            time=playback.time,
            delta=playback.delta,
            frame=playback.frame,
            rate=playback.rate,
            mouse=self._mouse.values(picture.size[1], is_upward=picture.counts_upward),
            date=(now.year, now.month - 1, now.day, seconds),
        )
        if self._begun and not playback.paused:
            self.times.add("frame", 1e3 * (begun - self._begun))
        self._begun = begun
        timing = self._renderer.draw(picture, uniforms, timed=self.has_overlay or self.shown % _TIME_EVERY == 0)
        self._say("frame", self._renderer.failure)
        if timing is not None:
            self.times.add("GPU", timing.gpu_ns / 1e6)
            self.times.add("latency", timing.latency_ns / 1e6)

    def _present(self, layers: tuple[Layer, ...]) -> bool:
        try:
            return self._swapchain.present(layers)
        except UnavailableError as error:
            if error.vk_result != _SURFACE_LOST:
                raise
            self._close_surface()
            self._open_surface()
            return False

    def _layers(self, now: float) -> tuple[Layer, ...]:
        picture = Layer(self.picture.image.hal, is_upward=self.picture.is_upward)
        message = "\n".join(self.messages.values())
        if not self.has_overlay and not message:
            return (picture,)
        text = (self.has_overlay, message, self._resized, self.playback.paused)
        if self._panel is None or text != self._panel_text or (now >= self._panel_due and self.has_overlay):
            self._panel_text, self._panel_due = text, now + _OVERLAY_SECONDS
            if self._panel is not None:
                self._panel.close()
            width, height = self.picture.size
            playback = self.playback
            title = f"{self._title}   {width} x {height}   {playback.time:.2f} s   frame {playback.frame}"
            if playback.paused:
                title += "   paused"
            array = self._overlay.panel(
                title if self.has_overlay else "",
                self.times.rows() if self.has_overlay else (),
                message,
                self._resized[0],
            )
            self._panel = self.device.asimage(array, "rgba8unorm")
        return picture, Layer(self._panel.hal, at=(0, 0))

    def screenshot(self) -> Path:
        """Writes the picture, without what stands over it, as a PNG file; returns its path."""
        path = self._screenshots / f"{Path(self._title).stem}-{self.playback.frame:06}.png"
        path.write_bytes(encode_picture(pixels_of(self.picture)))
        return path

    # -- events --------------------------------------------------------------------------------------

    def _key(self, _window: object, key: int, _code: int, action: int, mods: int) -> None:
        glfw, playback = self._glfw, self.playback
        if action == glfw.RELEASE:
            return
        far = 10.0 if mods & glfw.MOD_SHIFT else 1.0
        actions: dict[int, Callable[[], object]] = {
            glfw.KEY_SPACE: self._toggle_pause,
            glfw.KEY_PERIOD: lambda: playback.step(1),
            glfw.KEY_COMMA: lambda: playback.step(-1),
            glfw.KEY_RIGHT: lambda: playback.seek(far),
            glfw.KEY_LEFT: lambda: playback.seek(-far),
            glfw.KEY_HOME: self._restart,
            glfw.KEY_O: self._toggle_overlay,
            glfw.KEY_F: self._toggle_full_screen,
            glfw.KEY_F11: self._toggle_full_screen,
            glfw.KEY_S: self._keep_screenshot,
            glfw.KEY_Q: self._ask_to_close,
            glfw.KEY_ESCAPE: self._ask_to_close,
        }
        if (chosen := actions.get(key)) is not None:
            chosen()

    def _keep_screenshot(self) -> None:
        try:
            self.screenshot()
            self._say("screenshot", None)
        except (PumiceError, OSError) as error:
            self._say("screenshot", error)

    def _toggle_pause(self) -> None:
        self.playback.paused = not self.playback.paused

    def _toggle_overlay(self) -> None:
        self.has_overlay = not self.has_overlay

    def _restart(self) -> None:
        self.picture.restart()
        self.playback.restart()

    def _ask_to_close(self) -> None:
        self._glfw.set_window_should_close(self._window, True)

    def _toggle_full_screen(self) -> None:
        glfw, window = self._glfw, self._window
        if self._windowed is None:
            monitor = self._nearest_monitor()
            if monitor is None:
                return
            self._windowed = (*glfw.get_window_pos(window), *glfw.get_window_size(window))
            mode = glfw.get_video_mode(monitor)
            glfw.set_window_monitor(window, monitor, 0, 0, mode.size.width, mode.size.height, mode.refresh_rate)
        else:
            glfw.set_window_monitor(window, None, *self._windowed, glfw.DONT_CARE)
            self._windowed = None

    def _nearest_monitor(self) -> Any:
        """Returns the monitor that most of the window is on."""
        glfw = self._glfw
        left, top = glfw.get_window_pos(self._window)
        width, height = glfw.get_window_size(self._window)

        def overlap(monitor: Any) -> int:
            x, y = glfw.get_monitor_pos(monitor)
            size = glfw.get_video_mode(monitor).size
            across = min(left + width, x + size.width) - max(left, x)
            down = min(top + height, y + size.height) - max(top, y)
            return int(max(across, 0) * max(down, 0))

        return max(glfw.get_monitors(), key=overlap, default=None)

    def _button(self, window: object, button: int, action: int, _mods: int) -> None:
        if button != self._glfw.MOUSE_BUTTON_LEFT:
            return
        if action == self._glfw.PRESS:
            self._mouse.press(*self._place(*self._glfw.get_cursor_pos(window)))
        else:
            self._mouse.release()

    def _moved(self, _window: object, x: float, y: float) -> None:
        self._mouse.move(*self._place(x, y))

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """Returns a place in the window's own units as pixels of the picture."""
        width, height = self._glfw.get_window_size(self._window)
        across, down = self.picture.size
        return x * across / max(width, 1), y * down / max(height, 1)

    def close(self) -> None:
        """Closes the window with its device; idempotent."""
        self.is_closed = True
        self._closers.close()


def _glfw() -> Any:
    try:
        import glfw
    except ImportError as error:  # it raises one where it finds no library, too
        raise UnavailableError("a window needs GLFW: pip install 'pumice[view]', or --offscreen") from error
    glfw.ERROR_REPORTING = "ignore"  # it is asked for
    return glfw


def _check(result: object, glfw: Any, failure: str) -> None:
    """Raises the error of GLFW if a call returned nothing."""
    if not result:
        _, reason = glfw.get_error()
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise UnavailableError(f"{failure}{f' (GLFW: {text})' if text else ''}; --offscreen renders without a window")
