"""A picture on a canvas of rendercanvas: in notebooks, Qt, wx, and the library's other targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..base.closeable import Closeable
from .picture import Picture, pixels_of
from .playback import Playback
from .renderer import Renderer
from .uniforms import Mouse, Uniforms


class Canvas(Protocol):
    """The part of ``rendercanvas.BaseRenderCanvas`` that the viewer uses."""

    def get_context(self, context_type: str) -> Any: ...

    def get_physical_size(self) -> tuple[int, int]: ...

    def get_pixel_ratio(self) -> float: ...

    def request_draw(self, draw_function: Callable[[], None] | None = None) -> None: ...

    def add_event_handler(self, *args: Any) -> Any: ...


class CanvasView(Closeable):
    """Draws a picture whenever a canvas requests a frame, and passes the mouse's events to the picture.

    >>> from rendercanvas.auto import RenderCanvas
    >>> canvas = RenderCanvas(size=(640, 360), update_mode="continuous")
    >>> view = CanvasView(ShaderPicture(device, Path("waves.frag")), canvas)
    >>> canvas  # the last line of a notebook's cell shows it

    Calling sequence: made → the canvas draws → ``close``, which leaves the canvas and the picture open.

    Attributes:
        picture: the picture that it shows.
        playback: the picture's time.
    """

    def __init__(self, picture: Picture, canvas: Canvas) -> None:
        self.picture = picture
        self.playback: Playback = Playback()
        self._canvas = canvas
        self._mouse = Mouse()
        self._renderer = Renderer(picture.device)
        self._context = canvas.get_context("bitmap")
        self._size = (0, 0)
        canvas.add_event_handler(self._pointer, "pointer_down", "pointer_move", "pointer_up")
        canvas.request_draw(self.draw)

    def draw(self) -> None:
        """Draws a frame, and asks for the next."""
        size = self._canvas.get_physical_size()
        if 0 not in size and not self._renderer.is_closed:
            if size != self._size:
                self._size = size
                self.picture.resize(size)
                self.playback.redraw()
            if self.playback.advance(time.monotonic()):
                playback = self.playback
                mouse = self._mouse.values(self.picture.size[1], is_upward=self.picture.counts_upward)
                self._renderer.draw(
                    self.picture,
                    Uniforms(
                        time=playback.time, delta=playback.delta, frame=playback.frame, rate=playback.rate, mouse=mouse
                    ),
                    timed=False,
                )
                self._context.set_bitmap(pixels_of(self.picture))
            self._canvas.request_draw()

    def _pointer(self, event: Mapping[str, Any]) -> None:
        ratio = self._canvas.get_pixel_ratio()
        position = event["x"] * ratio, event["y"] * ratio
        if event["event_type"] == "pointer_down":
            self._mouse.press(*position)
        elif event["event_type"] == "pointer_move":
            self._mouse.move(*position)
        else:
            self._mouse.release()

    def close(self) -> None:
        """Draws no more; idempotent."""
        self._renderer.close()
