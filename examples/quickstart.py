"""Multiply two arrays on the GPU: NumPy in, NumPy out, then with arrays that stay on the device."""

import numpy as np

import pumice
from pumice import shaders

with pumice.open_device() as device:
    print(device)
    kernel = device.load_kernel(shaders.source_path("mul"))
    print(kernel)

    a = np.array([1, 2, 3, 4], np.float32)
    b = np.array([2, 3, 4, 5], np.float32)
    c = kernel(a, b, pumice.empty(a.shape, np.float32))
    print("NumPy arrays:", c)
    assert np.array_equal(c, a * b)

    x, y = device.asarray(a), device.asarray(b)
    z = device.empty(a.shape, np.float32)
    for _ in range(3):
        kernel(x, y, z)  # each call returns at once; they run in this order
        kernel(z, y, x)
    print("after six calls on the device:", x.numpy())
    assert np.allclose(x.numpy(), a * b**6)
