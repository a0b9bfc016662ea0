"""What does the pytest plug-in cost a test? Runs of the same tests with it and without it take turns.

Each run is a process of pytest with a few hundred tests in one module. Without the plug-in, the tests have the device
and the kernel from fixtures of their own, of the same scopes. Taken is the CPU time of pytest's loop over the
tests, driver's threads included, which other work on the machine disturbs less than the time that passes. ``start`` is
what loading the plug-in adds to a run whose tests do not use it. Printed are the medians over the rounds, and the
median of the ratios of a round.

    python benchmarks/plugin_overhead.py [--rounds 9] [--tests 300] [--device lavapipe]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """
import numpy as np, pumice, pytest
TURNS = pytest.mark.parametrize("turn", range({tests}))
X = np.arange(1024, dtype=np.float32)
"""
OWN_FIXTURES = """
@pytest.fixture(scope="module")
def device():
    with pumice.open_device({device!r}) as device:
        yield device

@pytest.fixture
def load(device):
    with device.load_kernel({kernel!r}) as kernel:
        yield kernel
"""
PLUGIN_FIXTURES = """
@pytest.fixture
def device(pumice_device): return pumice_device

@pytest.fixture
def load(pumice_kernel): return pumice_kernel({kernel!r})
"""
CASES = {
    "no device": "import pytest\n@pytest.mark.parametrize('turn', range({tests}))\ndef test(turn): pass\n",
    "a device, nothing done": "@TURNS\ndef test(turn, device): pass\n",
    "a kernel, NumPy arrays": "@TURNS\ndef test(turn, load): assert load(X, X, pumice.empty(1024))[2] == 4\n",
    "a kernel, arrays on the device": (
        "@TURNS\ndef test(turn, load, device):\n    x = device.asarray(X)\n"
        "    assert load(x, x, device.empty(1024)).numpy()[2] == 4\n"
    ),
}
CONFTEST = """
import time, pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    begin = time.process_time()
    result = yield
    print("LOOP", time.process_time() - begin)
    return result
"""
# The plug-in's header loads the driver before the tests: so does the other side.
DRIVER = """
def pytest_collection_finish(session):
    import pumice
    pumice.list_devices()
"""
KERNEL = str(Path(__file__).resolve().parents[1] / "shaders" / "mul.spv")


def run(folder: Path, *, plugin: bool, device: str) -> float:
    """Seconds of the processor, the driver's threads' included, in pytest's loop."""
    options = ["-p", "pumice.testing.plugin", "--pumice-device", device] if plugin else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PUMICE_DEVICE": device},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return float(done.stdout.partition("LOOP ")[2].split()[0])


def loading() -> float:
    """Seconds that importing the plug-in takes, once pytest is there."""
    code = "import time, pytest; t = time.process_time(); import pumice.testing.plugin; print(time.process_time() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Prints a line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tests", type=int, default=300)
    parser.add_argument("--device", default="lavapipe")
    options = parser.parse_args()
    print(f"{'tests':<32} {'without':>10} {'with':>10} {'ratio':>7}   (milliseconds a test, {options.device})")
    for name, body in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            sides: dict[bool, list[float]] = {False: [], True: []}
            for number in range(2 * options.rounds):
                plugin = number % 2 == (number // 2) % 2  # each side comes first in turn
                fixtures = "" if name == "no device" else HEAD + (PLUGIN_FIXTURES if plugin else OWN_FIXTURES)
                text = (fixtures + body).format(tests=options.tests, kernel=KERNEL, device=options.device)
                (Path(folder) / "test_it.py").write_text(text)
                (Path(folder) / "conftest.py").write_text(CONFTEST + (DRIVER if fixtures else ""))
                sides[plugin].append(run(Path(folder), plugin=plugin, device=options.device) * 1000 / options.tests)
        ratio = statistics.median(w / o for o, w in zip(sides[False], sides[True], strict=True))
        without, with_it = statistics.median(sides[False]), statistics.median(sides[True])
        print(f"{name:<32} {without:>10.3f} {with_it:>10.3f} {ratio:>7.2f}")
    start = statistics.median(loading() for _ in range(options.rounds)) * 1000
    print(f"start: {start:.1f} ms for loading the plug-in")


if __name__ == "__main__":
    main()
