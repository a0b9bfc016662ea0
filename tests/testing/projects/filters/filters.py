"""Filters for pictures, on the GPU."""

from pathlib import Path

import numpy as np

import pumice

BOX = Path(__file__).parent / "box.comp"


def box(kernel: pumice.Kernel, picture: np.ndarray) -> np.ndarray:
    """The mean of 3 x 3 pixels, with the kernel of BOX."""
    height, width = picture.shape
    groups = (-(-width // 8), -(-height // 8))
    out = pumice.empty((height, width), np.float32)
    return kernel(picture, out, groups=groups, width=width, height=height)
