"""Sources with Shadertoy's ``mainImage`` as kernels: an image is the result, inputs have their names."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice

pytestmark = pytest.mark.vulkan


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


def test_positions_and_inputs(device: pumice.Device) -> None:
    kernel = device.load_kernel("""// the alpha is kept
uniform vec3 iResolution; // as other programs need it
void mainImage(out vec4 color, in vec2 position) {
    color = vec4(position / iResolution.xy, iTime, texelFetch(iChannel0, ivec2(position), 0).x);
}
""")
    before = np.arange(9 * 20, dtype=np.float32).reshape(9, 20)
    after = kernel(pumice.empty((9, 20, 4)), iChannel0=before, iTime=0.25)
    assert isinstance(after, np.ndarray)
    rows, columns = np.mgrid[:9, :20] + 0.5
    expected = np.stack([columns / 20, rows / 9, np.full((9, 20), 0.25), before], axis=-1)
    np.testing.assert_allclose(after, expected, rtol=1e-6)


def test_derivatives_and_discard(device: pumice.Device) -> None:
    if "quad" not in device.profile.subgroup.supported_operations:
        pytest.skip("the device has no subgroup operations over quads")
    kernel = device.load_kernel("""void mainImage(out vec4 color, in vec2 position) {
    float value = 3 * position.x + position.y * position.y;
    if (position.x < 2) discard;
    color = vec4(dFdx(value), dFdy(2 * position.y), fwidth(position.x), iFrame);
}
""")
    result = kernel(pumice.empty((16, 16, 4)), iFrame=7)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result[:, 2:], np.broadcast_to(np.float32([3, 2, 1, 7]), (16, 14, 4)))
    np.testing.assert_array_equal(result[:, :2], np.broadcast_to(np.float32([0, 0, 0, 1]), (16, 2, 4)))


def test_errors_have_the_lines_of_the_source(device: pumice.Device) -> None:
    with pytest.raises(pumice.InvalidArgumentError, match="missing") as caught:
        device.load_kernel("\nvoid mainImage(out vec4 color, in vec2 position) {\n    color = missing;\n}\n")
    assert caught.value.location == "<source>:3"
    kernel = device.load_kernel("void mainImage(out vec4 color, in vec2 position) { color = vec4(iTime); }\n")
    with pytest.raises(pumice.InvalidArgumentError, match=r"uniform\(s\) float iTime not given"):
        kernel(pumice.empty((8, 8, 4)))
