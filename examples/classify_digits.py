"""A compiled program end to end: an image classifier, loaded, called with NumPy, and inspected.

The module ``digits/digits.vmfb`` is compiled from ``digits.mlir``, whose weights ``train.py`` trains.
"""

from pathlib import Path

import numpy as np

import pumice

FOLDER = Path(__file__).parent / "digits"

with pumice.Session() as session:
    session.load(FOLDER / "digits.vmfb")
    classify = session.lookup("module.classify")
    print(classify.signature)

    for name in ("three", "seven"):
        image = np.load(FOLDER / f"{name}.npy")
        odds, digit = classify(image)
        for row in image[0, ::2, :, 0]:
            print("".join(" .:oO@"[int(5 * pixel)] for pixel in row))
        print(f"{name}: a {digit.numpy()[0]}, with probability {odds.numpy().max():.3f}\n")
        assert digit.numpy()[0] == {"three": 3, "seven": 7}[name]
    assert np.isclose(np.asarray(odds).sum(), 1, atol=1e-5)
