"""Compiled programs as pictures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice
from pumice.hal_vulkan.instance.driver import Driver
from pumice.runtime.device import Device
from pumice.status import InvalidArgumentError, NotFoundError
from pumice.viewer import ProgramPicture, Renderer, Uniforms, pixels_of, render
from pumice.vm.execution.bytecode_module import BytecodeModule

pytestmark = pytest.mark.vulkan

HEAT = """
module @m {
  func.func public @f(%frame: tensor<i32>, %heat: tensor<4x6xf32>, %time: tensor<f32>)
      -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %step = stablehlo.constant dense<0.25> : tensor<4x6xf32>
    %next = stablehlo.add %heat, %step : tensor<4x6xf32>
    return %next, %next : tensor<4x6xf32>, tensor<4x6xf32>
  }
}
"""


def told(shape: str, body: str) -> str:
    """A program that gives each pixel of a picture what it was told."""
    return f"""
module @m {{
  func.func public @f(%time: tensor<f32>, %frame: tensor<i32>, %mouse: tensor<4xf32>) -> tensor<{shape}> {{
    {body}
    return %r : tensor<{shape}>
  }}
}}
"""


COLORS = told(
    "4x6x4xf32",
    """%f = stablehlo.convert %frame : (tensor<i32>) -> tensor<f32>
    %c = stablehlo.constant dense<0.1> : tensor<f32>
    %g = stablehlo.multiply %f, %c : tensor<f32>
    %t = stablehlo.reshape %time : (tensor<f32>) -> tensor<1xf32>
    %u = stablehlo.reshape %g : (tensor<f32>) -> tensor<1xf32>
    %m = "stablehlo.slice"(%mouse) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>,
        strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<1xf32>
    %a = stablehlo.constant dense<1.0> : tensor<1xf32>
    %v = stablehlo.concatenate %t, %u, %m, %a, dim = 0
        : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4xf32>
    %r = stablehlo.broadcast_in_dim %v, dims = [2] : (tensor<4xf32>) -> tensor<4x6x4xf32>""",
)
BYTES = told("4x6x3xui8", """%r = stablehlo.constant dense<7> : tensor<4x6x3xui8>""")


@pytest.fixture(scope="module")
def viewed(driver: Driver) -> Iterator[Device]:
    with pumice.open_device("vulkan") as device:
        device.vulkan.read_clock()  # keeps a kernel for it on devices without calibrated timestamps
        yield device


def picture_of(device: Device, text: str, function: str = "f") -> ProgramPicture:
    return ProgramPicture(device, BytecodeModule.from_bytes(pumice.compile(text), "m"), function)


def test_programs_are_told_time_frame_and_mouse(viewed: Device) -> None:
    with picture_of(viewed, COLORS) as picture, Renderer(viewed) as renderer:
        picture.resize((100, 100))
        assert picture.size == (6, 4)  # its own
        renderer.draw(picture, Uniforms(time=0.2, frame=3, mouse=(0, 0.8, 0, 0)))
        pixels = pixels_of(picture)
    assert pixels.shape == (4, 6, 4) and (pixels == [51, 76, 204, 255]).all() | (pixels == [51, 77, 204, 255]).all()


def test_state_is_what_the_program_returned_last(viewed: Device) -> None:
    with picture_of(viewed, HEAT) as picture:
        frames = [frame[0, 0, 0] for frame in render(picture, (6, 4), 3)]
        picture.restart()
        frames += [frame[0, 0, 0] for frame in render(picture, (6, 4), 1)]
    np.testing.assert_allclose(frames, [64, 128, 191, 64], atol=1)


def test_bytes_are_colours(viewed: Device) -> None:
    with picture_of(viewed, BYTES) as picture:
        (frame,) = render(picture, (6, 4), 1)
    assert (frame == [7, 7, 7, 255]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (told("4xf32", "%r = stablehlo.add %mouse, %mouse : tensor<4xf32>"), "a picture as the first result"),
        (HEAT.replace("(tensor<4x6xf32>, tensor<4x6xf32>)", "tensor<4x6xf32>").replace(
            "return %next, %next : tensor<4x6xf32>, tensor<4x6xf32>", "return %next : tensor<4x6xf32>"
        ), "the next values of"),
    ],
)  # fmt: skip
def test_other_functions_are_refused(viewed: Device, text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        picture_of(viewed, text)


def test_a_function_that_is_not_there_is_refused(viewed: Device) -> None:
    with pytest.raises(NotFoundError):
        picture_of(viewed, BYTES, "g")
