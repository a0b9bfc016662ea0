"""A display that nobody sees: Xvfb, for tests of windows."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from pumice.base.install_hints import install_hint


@contextmanager
def display(size: str = "640x480") -> Iterator[str]:
    """The name of a display; skips where there is no Xvfb, or it does not start."""
    program = shutil.which("Xvfb")
    if program is None:
        pytest.skip(f"windows are tested on Xvfb, which is not installed. {install_hint('xvfb')}")
    reader, writer = os.pipe()
    command = [program, "-displayfd", str(writer), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(
        command, pass_fds=(writer,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as numbers:
            number = numbers.readline().strip()  # or nothing, when it ends
        if not number:
            pytest.skip(f"Xvfb did not start here (exit status {server.wait(10)})")
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(10)


def screen(name: str) -> np.ndarray:
    """Returns the content of a display, of shape (height, width, 3)."""
    from PIL import ImageGrab

    return np.asarray(ImageGrab.grab(xdisplay=name).convert("RGB"))
