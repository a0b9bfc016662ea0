"""Messages for arrays that are almost of a binding's type, and for blocks that no device binds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice

pytestmark = pytest.mark.vulkan

DOUBLED = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Values { %s v[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < v.length()) v[i] *= 2; }
"""


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_for_vectors(device: pumice.Device, dtype: type[np.generic]) -> None:
    kernel = device.load_kernel(DOUBLED % "vec2")
    x = np.array([[1 + 2j, 3 - 4j]], dtype)
    with pytest.raises(pumice.InvalidArgumentError, match="two float32: give x") as caught:
        kernel(x)
    advice = caught.value.message.rpartition("give ")[2]
    result = kernel(eval(advice, {"x": x, "np": np}))
    np.testing.assert_array_equal(result, [[[2, 4], [6, -8]]])


@pytest.mark.parametrize("shape", [(5, 3), (4, 3), (2, 5, 3)])
def test_rows_of_three_for_vec3(device: pumice.Device, shape: tuple[int, ...]) -> None:
    kernel = device.load_kernel(DOUBLED % "vec3")
    x = np.ones(shape, np.float32)
    for given in (x, x.tolist()):
        with pytest.raises(pumice.InvalidArgumentError, match="each padded to 16 bytes. Pad the last axis") as caught:
            kernel(given)
    result = kernel(eval(caught.value.message.rpartition(": ")[2], {"x": x, "np": np}))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result[..., :3], 2 * x)


def test_a_uniform_block_too_large(device: pumice.Device) -> None:
    most = device.profile.limits.max_uniform_buffer_range
    source = f"""#version 450
layout(local_size_x = 1) in;
layout(binding = 0) uniform Table {{ vec4 t[{most // 16 + 1}]; }};
layout(binding = 1) buffer Out {{ vec4 o; }};
void main() {{ o = t[gl_GlobalInvocationID.x]; }}
"""
    with pytest.raises(pumice.InvalidArgumentError, match="uniform block Table has .* declare it as a storage buffer"):
        device.load_kernel(source)
    device.load_kernel(source.replace("uniform Table", "readonly buffer Table"))
