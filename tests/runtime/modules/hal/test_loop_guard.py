"""Programs whose kernels the driver cuts fail, in every dispatch ABI and however they are called."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from support.devices.features import require_cut_loops
from support.peer import compile_module
from support.runtime.hal_module import DEVICE_LOCAL, FORMAT, array_of, buffer_of, direct, storage_blob, vm

import pumice
from pumice.hal_vulkan import Device
from pumice.hal_vulkan.instance.driver import Driver, shared_driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.runtime.modules.hal.module import HalState
from pumice.status import DataLossError
from pumice.waits.wait_frame import Wait

pytestmark = pytest.mark.vulkan

DESCRIPTORS = """
#version 450
layout(local_size_x = 4) in;
layout(push_constant) uniform Push { uint most; };
layout(set = 0, binding = 1) buffer Out { uint v[]; } result;
void main() { uint c = 0; for (uint i = 0; i < most; i++) c++; result.v[gl_GlobalInvocationID.x] = c; }
"""
TABLE = """
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 4) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Numbers { uint v[]; };
layout(push_constant) uniform Push { uint most; };
layout(set = 3, binding = 0) buffer Table { Numbers a; Numbers result; };
void main() { uint c = 0; for (uint i = 0; i < most; i++) c++; result.v[gl_GlobalInvocationID.x] = c; }
"""


@pytest.mark.parametrize("push", [False, None], ids=["sets", "push"])
@pytest.mark.parametrize("source", [DESCRIPTORS, TABLE], ids=["descriptors", "table of addresses"])
def test_dispatches(driver: Driver, source: str, push: bool | None) -> None:
    """The layout has a binding that the shader does not use: the report lies past it."""
    require_cut_loops(driver)
    with Device(driver, options=PlanOptions(push_descriptors=push)) as device:
        name = FORMAT if source is DESCRIPTORS else "vulkan-spirv-fb-ptr"
        blob = storage_blob(source, 2, 4)
        state = HalState((device,))
        made = state.executable_create(device, -1, vm(name), vm(blob), None)
        assert made.pipelines[0].report is not None

        def run(most: int) -> np.ndarray:
            one, out = (buffer_of(state, device, np.zeros(4, np.uint32), DEVICE_LOCAL) for _ in range(2))
            commands = state.command_buffer_create(device, 1, 3, -1, 0)
            state.command_buffer_dispatch(commands, made, 0, 1, 1, 1, 0, (most,), direct(one, out))
            state.command_buffer_execution_barrier(commands, 28, 13, 0)
            state.command_buffer_finalize(commands)
            done = state.fence_create(device, 0)
            state.queue_execute_indirect(device, -1, None, done, commands, 0, ())
            awaited = state.fence_await(-1, 0, (done,))
            if isinstance(awaited, Wait):
                for source in awaited.sources:
                    source.wait_until()
            return array_of(state, out, np.uint32)

        assert run(1000).tolist() == [1000] * 4
        for _ in range(2):
            with pytest.raises(DataLossError, match="main"):
                run(100_000)
            assert run(1000).tolist() == [1000] * 4
        state.close()


@pytest.mark.peer
@pytest.mark.parametrize("abi", ["descriptors", "bda"])
def test_sums_as_the_peers_compiler_writes_them(abi: str) -> None:
    """Its kernel for a sum is one loop of as many passes as there are elements."""

    def module(count: int) -> bytes:
        text = f"""func.func @sum(%x: tensor<{count}xf32>) -> tensor<f32> {{
          %zero = arith.constant dense<0.0> : tensor<f32>
          %sum = linalg.reduce {{ arith.addf }} ins(%x : tensor<{count}xf32>) outs(%zero : tensor<f32>) dimensions = [0]
          return %sum : tensor<f32>
        }}"""
        flags = ["--iree-vulkan-dispatch-abi=bda"] if abi == "bda" else []
        return compile_module(text, *flags, name=f"sum{count}.mlir").read_bytes()

    require_cut_loops(shared_driver())
    with pumice.Session() as session:
        session.append_module_from_memory(module(60_001))
        assert session.call("module.sum", np.ones(60_001, np.float32)).item() == 60_001
    with pumice.Session(pumice.open_device()) as session, session.device:
        session.append_module_from_memory(module(100_003))
        ones = np.ones(100_003, np.float32)
        function = session.lookup("module.sum")
        for _ in range(2):
            with pytest.raises(DataLossError, match="sum_dispatch_0.*65,535"):
                function(ones)
        with pytest.raises(DataLossError):
            function.submit(ones).result()

        async def stream() -> list[object]:
            return [one async for one in function.stream([ones, ones])]

        with pytest.raises(DataLossError):
            asyncio.run(stream())
        with pytest.raises(DataLossError):
            asyncio.run(function.call_async(ones))
        semaphore = session.device.hal.create_semaphore()
        if function.signature.is_async:
            result = function(ones, signal=pumice.Fence([(semaphore, 1)]))
            with pytest.raises(DataLossError):
                semaphore.wait(1)
            del result
        semaphore.close()
