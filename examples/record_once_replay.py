"""The HAL underneath: record a command buffer once with binding slots, and run it on other buffers each time.

Two dispatches with a barrier between them; timeline semaphores order the submissions.
"""

import numpy as np

import pumice
from pumice import shaders
from pumice.hal_vulkan import BindingSlot, MemoryTypeFlags

VISIBLE = MemoryTypeFlags.DEVICE_LOCAL | MemoryTypeFlags.HOST_VISIBLE

with pumice.open_device() as user_device:
    device = user_device.hal
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    commands = device.create_command_buffer(binding_capacity=3, name="cube")
    commands.begin()
    commands.dispatch(pipeline, [BindingSlot(0), BindingSlot(0), BindingSlot(1)], (1, 1, 1))  # x * x
    commands.execution_barrier()
    commands.dispatch(pipeline, [BindingSlot(0), BindingSlot(1), BindingSlot(2)], (1, 1, 1))  # x * x * x
    commands.end()

    done = device.create_semaphore(name="done")
    square = device.create_buffer(16)
    for step in range(1, 6):
        x = np.arange(4, dtype=np.float32) + step
        with (
            device.create_buffer(x.nbytes, memory_type=VISIBLE) as source,
            device.create_buffer(x.nbytes, memory_type=VISIBLE) as cube,
        ):
            source.write(x.tobytes())
            device.compute_queue.submit([commands], bindings=[source, square, cube], signals=[(done, step)])
            done.wait(step, timeout=10)
            result = np.frombuffer(cube.read(), np.float32)
        print(x, "cubed:", result)
        assert np.array_equal(result, x**3)
