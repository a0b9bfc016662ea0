"""Runs many modules on the peer's runtime in one process: ``python peer_batch.py FOLDER DEVICE``.

For each ``NAME.vmfb`` of the folder, with the arguments in ``NAME.npz``, it writes the results of ``main`` to
``NAME.out.npz``, in order, and what ``main$async`` writes into storages of the caller to ``NAME.storages.npz``. What
fails goes to ``NAME.error`` instead.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import iree.runtime
import numpy as np


def main() -> None:
    """The command line."""
    folder, device = Path(sys.argv[1]), iree.runtime.get_device(sys.argv[2])
    for path in sorted(folder.glob("*.vmfb")):
        try:
            _run(path, device)
        except Exception:
            path.with_suffix(".error").write_text(traceback.format_exc())


def _run(path: Path, device: iree.runtime.HalDevice) -> None:
    with np.load(path.with_suffix(".npz")) as stored:
        arguments = [stored[f"arr_{index}"] for index in range(len(stored.files))]
    context, module = _loaded(path, device)
    given = context.modules[module.name]["main"](*arguments)
    results = [_on_host(each, device) for each in (given if isinstance(given, tuple) else (given,))]
    np.savez(path.with_suffix(".out.npz"), *results)

    # In the same context, whose command buffers then run with other buffers.
    storages = [_copied(np.zeros_like(each), device) for each in results]
    semaphore = device.create_semaphore(0)
    begin, end = (iree.runtime.HalFence.create_at(semaphore, value) for value in (1, 2))
    values = iree.runtime.VmVariantList(len(arguments) + len(storages) + 2)
    for view in (*(_copied(each, device) for each in arguments), *storages):
        values.push_ref(view)
    for fence in (begin, end):
        values.push_ref(fence)
    # The first submission waits for `begin`, which is signalled here before the host waits for anything inside.
    begin.signal()
    context.vm_context.invoke(module.lookup_function("main$async"), values, iree.runtime.VmVariantList(0))
    end.wait()
    arrays = (_on_host(iree.runtime.DeviceArray(device, view), device) for view in storages)
    np.savez(path.with_suffix(".storages.npz"), *arrays)


def _loaded(path: Path, device: iree.runtime.HalDevice) -> tuple[iree.runtime.SystemContext, iree.runtime.VmModule]:
    config = iree.runtime.Config(device=device)
    module = iree.runtime.VmModule.copy_buffer(config.vm_instance, path.read_bytes())
    context = iree.runtime.SystemContext(config=config)
    context.add_vm_module(module)
    return context, module


def _copied(array: np.ndarray, device: iree.runtime.HalDevice) -> iree.runtime.HalBufferView:
    """A view of a copy: release 3.13 imports NumPy's memory, which the device then cannot write to."""
    buffer = device.allocator.allocate_buffer_copy(
        memory_type=int(iree.runtime.MemoryType.DEVICE_LOCAL),
        allowed_usage=int(iree.runtime.BufferUsage.DEFAULT),
        device=device,
        buffer=np.ascontiguousarray(array),
    )
    element_type = iree.runtime.array_interop.map_dtype_to_element_type(array.dtype)
    return iree.runtime.HalBufferView(buffer, array.shape, element_type)


def _on_host(array: iree.runtime.DeviceArray, device: iree.runtime.HalDevice) -> np.ndarray:
    """A copy by way of a staging buffer: release 3.13 imports NumPy's memory, whose alignment Vulkan does not take."""
    view = array._buffer_view
    source = view.get_buffer()
    usage = iree.runtime.BufferUsage.TRANSFER_TARGET | iree.runtime.BufferUsage.MAPPING_SCOPED
    staging = device.allocator.allocate_buffer(
        memory_type=int(iree.runtime.MemoryType.HOST_LOCAL | iree.runtime.MemoryType.DEVICE_VISIBLE),
        allowed_usage=int(usage),
        allocation_size=source.byte_length(),
    )
    semaphore = device.create_semaphore(0)
    fences = [iree.runtime.HalFence.create_at(semaphore, value) for value in (0, 1)]
    device.queue_copy(source, staging, wait_semaphores=fences[0], signal_semaphores=fences[1])
    fences[1].wait()
    dtype = iree.runtime.HalElementType.map_to_dtype(view.element_type)
    return np.array(staging.map().asarray(view.shape, dtype))


if __name__ == "__main__":
    main()
