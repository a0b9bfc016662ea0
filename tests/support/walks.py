"""Walks of three calls through the package: how many files a call enters, and how often it comes back to one.

    python tests/support/walks.py [--files]

A walk is the sequence of the package's files whose functions a call enters, one after the other. A return is an entry
into a file that the walk has left before. ``--files`` prints the files in order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import pumice

PACKAGE = Path(pumice.__file__).parent
PROGRAM = """
func.func public @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<4xf32>
  %1 = stablehlo.add %0, %b : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


def walk(call: Callable[[], object]) -> tuple[list[str], int]:
    """Runs a call; returns the files that it enters, in order, and its returns."""
    files: dict[str, None] = {}
    returns, last = 0, ""
    prefix = f"{PACKAGE}/"

    def enter(frame: FrameType, event: str, argument: object) -> None:
        nonlocal returns, last
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(prefix) and file != last and not file.startswith(f"{prefix}tests/"):
            returns += file in files
            files[file] = None
            last = file

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [file.removeprefix(prefix) for file in files], returns


def main() -> None:
    """Prints the walks."""
    parser = argparse.ArgumentParser(description="Walks of calls through the package.")
    parser.add_argument("--files", action="store_true", help="print the files of each walk")
    options = parser.parse_args()
    device = pumice.open_device("vulkan")
    kernel = device.load_kernel(PACKAGE / "shaders" / "mul.spv")
    array = np.ones(4, np.float32)
    session = pumice.Session(device=device)
    session.load(PACKAGE / "examples" / "digits" / "digits.vmfb")
    image = np.load(PACKAGE / "examples" / "digits" / "three.npy")
    calls: dict[str, Callable[[], object]] = {
        "a kernel's first call": lambda: kernel(array, array, pumice.empty(4, np.float32)),
        "the same call again": lambda: kernel(array, array, pumice.empty(4, np.float32)),
        "a program's first call": lambda: session.call("module.classify", image),
        "the same program again": lambda: session.call("module.classify", image),
        "compiling two operations": lambda: pumice.compile(PROGRAM),
    }
    for name, call in calls.items():
        files, returns = walk(call)
        print(f"{name}: {len(files)} files, {returns} returns")
        if options.files:
            print("\n".join(f"  {file}" for file in files))


if __name__ == "__main__":
    main()
