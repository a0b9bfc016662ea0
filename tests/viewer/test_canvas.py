"""Pictures on rendercanvas's own offscreen canvas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pumice
from pumice.hal_vulkan.instance.driver import Driver
from pumice.runtime.device import Device
from pumice.viewer import CanvasView, ShaderPicture

offscreen = pytest.importorskip("rendercanvas.offscreen")

pytestmark = pytest.mark.vulkan

TEXT = """vec4 mainCompute(ivec2 p) {
    return iMouse.z > 0.0 ? vec4(iMouse.xy / 100.0, 0, 1) : vec4(vec2(p) / 255.0, 1, 1);
}"""


@pytest.fixture
def picture(driver: Driver, tmp_path: Path) -> Iterator[ShaderPicture]:
    (tmp_path / "a.comp").write_text(TEXT)
    device: Device
    with pumice.open_device("vulkan") as device, ShaderPicture(device, tmp_path / "a.comp") as shader:
        yield shader


def test_a_canvas_shows_the_picture_in_its_size_and_tells_of_the_mouse(picture: ShaderPicture) -> None:
    canvas = offscreen.RenderCanvas(size=(30, 20), pixel_ratio=1)
    with CanvasView(picture, canvas) as view:
        pixels = canvas.draw()
        assert pixels.shape == (20, 30, 4) and pixels[7, 9].tolist() == [9, 7, 255, 255]
        canvas.set_logical_size(16, 8)
        assert canvas.draw().shape == (8, 16, 4)
        for kind in ("pointer_down", "pointer_move"):
            canvas.submit_event({"event_type": kind, "x": 5 if kind == "pointer_down" else 12, "y": 7, "button": 1,
                                 "buttons": (1,), "modifiers": (), "ntouches": 0, "touches": {}})  # fmt: skip
            canvas._process_events()
        assert canvas.draw()[0, 0, :2].tolist() == [31, 18]
        assert view.playback.frame == 2
    canvas.close()
