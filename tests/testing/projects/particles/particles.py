"""Particles that fall, simulated on the default device."""

import numpy as np

import pumice

STEP = """
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Height { float height[]; };
layout(std430, binding = 1) buffer Speed { float speed[]; };
layout(push_constant) uniform Step { float seconds; uint steps; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= height.length()) return;
    for (uint step = 0; step < steps; ++step) {
        speed[i] -= 9.81 * seconds;
        height[i] = max(height[i] + speed[i] * seconds, 0.0);
    }
}
"""


class Particles:
    def __init__(self, height, device=None):
        self._owned = device is None
        self._device = device or pumice.open_device()
        self._kernel = self._device.load_kernel(STEP)
        self._height = self._device.asarray(height, np.float32)
        self._speed = self._device.zeros(self._height.shape)

    def step(self, seconds, steps=1):
        self._kernel(self._height, self._speed, seconds=seconds, steps=steps)

    @property
    def height(self):
        return self._height.numpy()

    def close(self):
        for one in (self._kernel, self._height, self._speed):
            one.close()
        if self._owned:
            self._device.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()
