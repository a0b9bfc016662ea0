"""One side of call_latency.py: a process that times calls of a compiled program on device arrays. Not a benchmark.

``python _program_worker.py SIDE PROGRAM DEVICE``; SIDE is ``pumice`` or ``iree``, which takes its own first Vulkan
device, and PROGRAM a name of peer_programs.py. It says ``ready``, answers ``result 0`` with the elements of the first
result, ``call 100`` with the nanoseconds of each of 100 calls, and ``driver 100``, if it is pumice, with those of what
the driver has to do for a call.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from peer_programs import PROGRAMS, Program, compiled

if TYPE_CHECKING:  # the peer's side does without
    from pumice import Device


def pumice_call(stack: ExitStack, program: Program, uri: str) -> Callable[[], Any]:
    """A call on device arrays that are there already."""
    return pumice_program(stack, program, uri)[0]


def pumice_program(stack: ExitStack, program: Program, uri: str) -> tuple[Callable[[], Any], Device]:
    """The same, with its device."""
    import pumice

    device = stack.enter_context(pumice.open_device(uri))
    session = stack.enter_context(pumice.Session(device))
    module = session.load(compiled(program))
    function = session.lookup(f"{module.name}.{program.function}")
    arrays = [device.asarray(array) for array in program.arrays()]
    return lambda: function(*arrays), device


def driver_alone(call: Callable[[], Any], device: Device) -> Callable[[], None]:
    """Submits again what a call submits, by bare native calls, and waits after each: what no runtime can save."""
    from pumice.hal_vulkan.vulkan.functions import NULL, chain, ffi, new

    fn, queue = device.vulkan.fn, device.vulkan.compute_queue
    real: Callable[..., int] = fn.vkQueueSubmit
    handles: list[Any] = []

    def noting(queue: Any, count: int, info: Any, fence: Any) -> int:
        handles.extend(info.pCommandBuffers[index] for index in range(info.commandBufferCount))
        return real(queue, count, info, fence)

    fn.vkQueueSubmit = noting
    call()
    fn.vkQueueSubmit = real
    semaphores = [device.vulkan.create_semaphore().handle]
    payload = ffi.new("uint64_t[1]")
    timeline = new("VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=payload)
    wait = new("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=semaphores, pValues=payload)
    counts = {"commandBufferCount": 1, "signalSemaphoreCount": 1, "pSignalSemaphores": semaphores}
    submits = [chain(new("VkSubmitInfo", **counts, pCommandBuffers=[handle]), timeline) for handle in handles]

    def run() -> None:
        for submit in submits:
            payload[0] += 1
            real(queue.handle, 1, submit, NULL)
            fn.vkWaitSemaphores(device.vulkan.handle, wait, 10**10)

    return run


def peer_elements(array: Any) -> np.ndarray:
    """The elements of a device array of the peer, by way of staging memory.

    Its own conversion imports NumPy's memory, which Vulkan refuses where that is not aligned to pages.
    """
    import iree.runtime as peer

    device, source = array._device, array._buffer_view.get_buffer()
    staging = device.allocator.allocate_buffer(
        memory_type=peer.MemoryType.HOST_LOCAL | peer.MemoryType.DEVICE_VISIBLE,
        allowed_usage=peer.BufferUsage.TRANSFER | peer.BufferUsage.MAPPING,
        allocation_size=source.byte_length(),
    )
    semaphore = device.create_semaphore(0)
    done = peer.HalFence.create_at(semaphore, 1)
    device.queue_copy(source, staging, peer.HalFence.create_at(semaphore, 0), done)
    done.wait()
    return np.array(staging.map().asarray(array._buffer_view.shape, array.dtype))


def peer_call(program: Program) -> Callable[[], Any]:
    """The same with the ``iree.runtime`` package."""
    try:
        import iree.runtime as peer
    except ImportError:
        raise SystemExit("this needs iree.runtime: pip install -e '.[peer]'") from None

    device = peer.get_device("vulkan")
    config = peer.Config(device=device)
    module = peer.VmModule.copy_buffer(config.vm_instance, compiled(program).read_bytes())
    function = peer.load_vm_modules(module, config=config)[0][program.function]
    arrays = [peer.asdevicearray(device, array) for array in program.arrays()]
    return lambda: function(*arrays)


def main(side: str, name: str, uri: str) -> None:
    """The command line."""
    program = PROGRAMS[name]
    with ExitStack() as stack:
        calls: dict[str, Callable[[], Any]] = {}
        if side == "pumice":
            call, device = pumice_program(stack, program, uri)
            for _ in range(100):  # until memory and recordings come again
                call()
            calls["driver"] = driver_alone(call, device)
        else:
            call = peer_call(program)
            call()
        calls["call"] = call
        print("ready", flush=True)
        gc.collect()
        gc.freeze()
        for line in sys.stdin:
            command, count = line.split()
            if command == "result":
                result = call()
                first = result[0] if isinstance(result, (tuple, list)) else result
                print(*(first.numpy() if side == "pumice" else peer_elements(first)).ravel(), flush=True)
                continue
            timed = calls[command]
            clock, times = time.perf_counter_ns, [0] * int(count)
            for index in range(len(times)):
                begin = clock()
                timed()
                times[index] = clock() - begin
            print(*times, flush=True)
        if side == "iree":
            os._exit(0)  # its bindings would list what they leak, in hundreds of lines


if __name__ == "__main__":
    main(*sys.argv[1:])
