"""A process ends with work in flight."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pumice
from pumice.hal_vulkan import DeviceType

PROGRAM = """
import atexit

def told():  # registered first, so called after pumice has done its part
    queue = device.hal.compute_queue
    wait_timeline(device.hal, queue.timeline, queue.submitted, 0, "the queue")  # raises if it has not come so far
    print("idle")

atexit.register(told)
import pumice
from pumice.hal_vulkan.sync.timeline import wait_timeline

device = pumice.open_device("vulkan", persistent_cache=False)
steps = "".join(f"s = sin(s * {i}.5) + cos(s);" for i in range(150))
kernel = device.load_kernel(
    "#version 450\\nlayout(local_size_x = 64) in; layout(binding = 0) buffer B { float y[]; };"
    "void main() { float s = y[gl_GlobalInvocationID.x];" + steps + "y[gl_GlobalInvocationID.x] = s; }"
)
kernel(device.zeros(64))
"""


@pytest.mark.slow
def test_software_drivers_finish_before_their_libraries_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """lavapipe compiles a shader when it first runs, in a thread that ended with a segmentation fault."""
    if pumice.list_devices()[0].device_type is not DeviceType.CPU:
        pytest.skip("the device is no software driver's")
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "1")
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "idle\n", ended.stderr
