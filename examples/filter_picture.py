"""A picture in, a picture out: an image that a kernel samples, and one that it writes.

``python examples/filter_picture.py [IN.png OUT.png]`` smooths a picture and keeps its edges; without names it takes the
noisy picture beside it, and says by how much the noise went down. Needs Pillow: ``pip install 'pumice[images]'``.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import pumice

FOLDER = Path(__file__).parent / "pictures"

source = sys.argv[1] if len(sys.argv) > 2 else FOLDER / "lake.png"
picture = np.asarray(Image.open(source).convert("RGBA"))

with pumice.open_device() as device:
    kernel = device.load_kernel(FOLDER / "bilateral.comp")
    print(kernel)
    # The array becomes an image with the format that its dtype and channels say; the result's is the shader's.
    smooth = kernel(picture, pumice.empty(picture.shape, np.uint8), radius=2.0, likeness=0.15)

    # Twice as large: an image on the device, read between texels by a sampler.
    height, width = picture.shape[:2]
    image = device.asimage(picture).with_sampler(device.sampler("linear", "mirrored_repeat"))
    large = device.empty_image((2 * height, 2 * width), "rgba8unorm")
    kernel(source=image, target=large, radius=2.0, likeness=0.15)
    print(image, "->", large)

    if len(sys.argv) > 2:
        Image.fromarray(large.numpy()).save(sys.argv[2])
        print("wrote", sys.argv[2])
    else:
        sky = np.s_[4:20, 4:40, 2]
        before, after = float(picture[sky].std()), float(smooth[sky].std())
        print(f"noise of the sky: {before:.1f} before, {after:.1f} after")
        assert after < before / 2
