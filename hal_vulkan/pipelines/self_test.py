"""The faults of a device's driver, found by small kernels that run once per version of driver and pumice.

The verdict is kept on disk. A device that cannot run the test, or whose driver crashed in it, gets every repair:
repairs are correct on all drivers. See ``docs/design/driver-faults.md``.

Thread rule: any thread; one thread tests a driver while others wait for the verdict.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...base.cache import CachedFile, folder_stamp
from ...hal.memory import MemoryTypeFlags
from ...spirv.repair.driver_faults import ALL_FAULTS, NO_FAULTS, DriverFault
from ...status import DeadlineExceededError, PumiceError
from ..instance.driver import Driver
from ..instance.logical_device import LogicalDevice
from ..instance.plan import PlanOptions
from ..instance.profile import DeviceProfile
from ..memory.allocator import Allocator
from ..memory.buffer import Buffer
from ..vulkan.functions import CData, ffi, new
from .descriptors import BIND_POINT_COMPUTE, COMPUTE_STAGE
from .resources import STORAGE_BUFFER

if TYPE_CHECKING:
    from ...spirv.repair.self_test import Probe

_log = logging.getLogger("pumice.self_test")

_ALIGNMENT: Final = 256
_TIMEOUT_NS: Final = 60_000_000_000
_VK_TIMEOUT: Final = 2
#: The unfinished runs (crashes of the driver) after which it is not tested again.
_MOST_DEATHS: Final = 2
_UNFINISHED: Final = b"unfinished "


class DriverVerdict(NamedTuple):
    """The result of a self-test.

    Attributes:
        faults: the faults whose repairs are on.
        unmended: the faults that their repair does not mend.
        reason: the reason for a missing result, which turns every repair on; empty if there is a result.
    """

    faults: frozenset[DriverFault]
    unmended: frozenset[DriverFault] = NO_FAULTS
    reason: str = ""


_verdicts: dict[tuple[object, ...], DriverVerdict] = {}
_lock = threading.Lock()


def driver_faults(device: LogicalDevice) -> frozenset[DriverFault]:
    """Returns the faults whose repairs a device's shaders need; tests the driver if it was not tested."""
    repairs = device.plan.repairs
    if repairs is not None:
        return ALL_FAULTS if repairs else NO_FAULTS
    key = _key(device.profile)
    verdict = _verdicts.get(key)
    if verdict is None:
        with _lock:
            verdict = _verdicts.get(key)
            if verdict is None:
                verdict = _verdicts[key] = _kept(device.driver, device.index, CachedFile("self-tests", key))
    return verdict.faults


def known_verdict(profile: DeviceProfile) -> DriverVerdict | None:
    """Returns the verdict on a device's driver; None if it was not tested."""
    key = _key(profile)
    return _verdicts.get(key) or _read(CachedFile("self-tests", key).load() or b"")[0]


def _key(profile: DeviceProfile) -> tuple[object, ...]:
    driver = (profile.driver_id, profile.driver_version, profile.driver_info, profile.driver_uuid)
    device = (profile.vendor_id, profile.device_id, profile.device_uuid, profile.name)
    return (driver, device, profile.api_version, tuple(sorted(profile.features)), _version())


@functools.cache
def _version() -> bytes:
    """Returns a digest of the code that writes and repairs the kernels."""
    spirv = Path(__file__).parents[2] / "spirv"
    return folder_stamp(spirv / "repair", spirv / "binary")


# -- verdicts on disk ----------------------------------------------------------------------------------


def _kept(driver: Driver, index: int, file: CachedFile) -> DriverVerdict:
    verdict, deaths = _read(file.load() or b"")
    if verdict is not None:
        return verdict
    if deaths >= _MOST_DEATHS:
        return DriverVerdict(ALL_FAULTS, reason=f"the process ended in each of {deaths} tests of this driver")
    file.store(_UNFINISHED + str(deaths + 1).encode())
    try:
        verdict = _tested(driver, index)
    except PumiceError as error:
        _log.warning(
            "the self-test of %s failed, so that all repairs of its shaders are on: %s",
            driver.profiles[index].name,
            error,
        )
        file.store(_UNFINISHED + b"0")
        return DriverVerdict(ALL_FAULTS, reason=error.message)
    except BaseException:  # an interrupt is no fault of the driver
        file.store(_UNFINISHED + str(deaths).encode())
        raise
    file.store(_written(verdict))
    return verdict


def _written(verdict: DriverVerdict) -> bytes:
    rows = (verdict.faults, verdict.unmended)
    return "\n".join(",".join(sorted(fault.value for fault in row)) for row in rows).encode()


def _read(content: bytes) -> tuple[DriverVerdict | None, int]:
    """Returns an entry's verdict, or None and the number of unfinished tests."""
    if not content or content.startswith(_UNFINISHED):
        return None, int(content[len(_UNFINISHED) :] or b"0")
    rows = [frozenset(map(DriverFault, row.split(","))) if row else NO_FAULTS for row in content.decode().split("\n")]
    return DriverVerdict(rows[0], rows[1]), 0


# -- the test ------------------------------------------------------------------------------------------


def _tested(driver: Driver, index: int) -> DriverVerdict:
    # Imported here: a process that finds a verdict on disk needs none of these.
    from ...spirv.reflection.reflect import reflect
    from ...spirv.repair.driver_repairs import with_repairs
    from ...spirv.repair.self_test import probes

    options = PlanOptions(repairs=False, staging=False, loop_guard=False, sanitize=False, wait="block")
    with _opened(driver, index, options) as device:
        tests = list(probes(device.plan.features))
        wrong = _wrong_counts(device, tests, [test.code for test in tests])
        again = [index for index, count in enumerate(wrong) if count]
        faulty = [tests[index] for index in again]
        faults = {test.fault for test in faulty}
        codes = [with_repairs(test.code, reflect(test.code), faults) for test in faulty]
        left = _wrong_counts(device, faulty, codes) if faulty else []
    helps = {test.fault for test, index, count in zip(faulty, again, left, strict=True) if count < wrong[index]}
    return DriverVerdict(
        frozenset(helps), frozenset(test.fault for test, count in zip(faulty, left, strict=True) if count)
    )


@contextlib.contextmanager
def _opened(driver: Driver, index: int, options: PlanOptions) -> Iterator[LogicalDevice]:
    """Opens a VkDevice for the test, so that a fault in it does not affect the user's device."""
    device = LogicalDevice(driver, index, options)
    try:
        yield device
    except DeadlineExceededError:  # work in flight uses it
        raise
    except BaseException:
        device.fn.vkDeviceWaitIdle(device.handle)
        device.destroy_native()
        raise
    device.destroy_native()


def _wrong_counts(device: LogicalDevice, tests: Sequence[Probe], codes: Sequence[bytes]) -> list[int]:
    """Runs kernels in one submission, and returns the number of wrong cases of each kernel."""
    allocator = Allocator(device)
    try:
        offsets, size = [], 0
        for test in tests:
            offsets.append((size, size + _ALIGNMENT))
            size += _ALIGNMENT + -(-test.result_bytes // _ALIGNMENT) * _ALIGNMENT
        memory_type = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
        buffer = Buffer.create(allocator, size, memory_type=memory_type)
        buffer.write(bytes(size))
        for test, (first, _) in zip(tests, offsets, strict=True):
            buffer.write(test.inputs, first)
        _run(device, buffer, codes, [(*pair, test.result_bytes) for pair, test in zip(offsets, tests, strict=True)])
        results = buffer.read()
    except DeadlineExceededError:  # work in flight uses the memory
        raise
    except BaseException:
        device.fn.vkDeviceWaitIdle(device.handle)
        allocator.close()
        raise
    allocator.close()
    return [
        len(test.wrong_cases(results[first : first + test.result_bytes]))
        for test, (_, first) in zip(tests, offsets, strict=True)
    ]


def _run(device: LogicalDevice, buffer: Buffer, codes: Sequence[bytes], places: Sequence[tuple[int, int, int]]) -> None:
    """Runs one workgroup of each kernel, and waits.

    Args:
        codes: the kernels.
        places: the offsets of their inputs and results in the buffer, and the size of the results.
    """
    fn, handle = device.fn, device.handle
    bindings = [
        new(
            "VkDescriptorSetLayoutBinding",
            binding=binding,
            descriptorType=STORAGE_BUFFER,
            descriptorCount=1,
            stageFlags=COMPUTE_STAGE,
        )
        for binding in range(2)
    ]
    set_layout = device.create(
        "descriptor set layout", new("VkDescriptorSetLayoutCreateInfo", bindingCount=2, pBindings=bindings)
    )
    layout = device.create(
        "pipeline layout", new("VkPipelineLayoutCreateInfo", setLayoutCount=1, pSetLayouts=[set_layout])
    )
    size = new("VkDescriptorPoolSize", type=STORAGE_BUFFER, descriptorCount=2 * len(codes))
    pool = device.create(
        "descriptor pool",
        new("VkDescriptorPoolCreateInfo", maxSets=len(codes), poolSizeCount=1, pPoolSizes=[size]),
    )
    sets = ffi.new("VkDescriptorSet[]", len(codes))
    allocate = new(
        "VkDescriptorSetAllocateInfo",
        descriptorPool=pool,
        descriptorSetCount=len(codes),
        pSetLayouts=[set_layout] * len(codes),
    )
    device.check(fn.vkAllocateDescriptorSets(handle, allocate, sets), "allocating descriptor sets")
    command_pool = device.create(
        "command pool", new("VkCommandPoolCreateInfo", queueFamilyIndex=device.plan.compute_family)
    )
    commands = ffi.new("VkCommandBuffer *")
    info = new("VkCommandBufferAllocateInfo", commandPool=command_pool, commandBufferCount=1)
    device.check(fn.vkAllocateCommandBuffers(handle, info, commands), "allocating a command buffer")
    begin = new("VkCommandBufferBeginInfo", flags=1)  # ONE_TIME_SUBMIT
    device.check(fn.vkBeginCommandBuffer(commands[0], begin), "beginning a command buffer")
    for index, (code, (first, second, length)) in enumerate(zip(codes, places, strict=True)):
        _bind(device, sets[index], buffer, ((first, _ALIGNMENT), (second, length)))
        fn.vkCmdBindPipeline(commands[0], BIND_POINT_COMPUTE, _pipeline(device, layout, code))
        fn.vkCmdBindDescriptorSets(commands[0], BIND_POINT_COMPUTE, layout, 0, 1, sets + index, 0, ffi.NULL)
        fn.vkCmdDispatch(commands[0], 1, 1, 1)
    device.check(fn.vkEndCommandBuffer(commands[0]), "ending a command buffer")
    _submit(device, commands)


def _bind(device: LogicalDevice, descriptor_set: CData, buffer: Buffer, ranges: Sequence[tuple[int, int]]) -> None:
    writes = [
        new(
            "VkWriteDescriptorSet",
            dstSet=descriptor_set,
            dstBinding=binding,
            descriptorCount=1,
            descriptorType=STORAGE_BUFFER,
            pBufferInfo=new(
                "VkDescriptorBufferInfo", buffer=buffer.handle, offset=buffer.offset + offset, range=length
            ),
        )
        for binding, (offset, length) in enumerate(ranges)
    ]
    array = ffi.new("VkWriteDescriptorSet[]", [write[0] for write in writes])
    device.fn.vkUpdateDescriptorSets(device.handle, len(writes), array, 0, ffi.NULL)


def _pipeline(device: LogicalDevice, layout: CData, code: bytes) -> CData:
    words = ffi.new("uint32_t[]", len(code) // 4)
    ffi.memmove(words, code, len(code))
    module = device.create("shader module", new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words))
    stage = new("VkPipelineShaderStageCreateInfo", stage=COMPUTE_STAGE, module=module, pName="main")
    info = new("VkComputePipelineCreateInfo", stage=stage, layout=layout, basePipelineIndex=-1)
    create = device.fn.vkCreateComputePipelines
    return device.make(
        "pipeline",
        lambda handle: create(device.handle, ffi.NULL, 1, info, ffi.NULL, handle),
        "a pipeline of the self-test",
    )


def _submit(device: LogicalDevice, commands: CData) -> None:
    """Submits a command buffer and waits for it."""
    queue = ffi.new("VkQueue *")
    device.fn.vkGetDeviceQueue(device.handle, device.plan.compute_family, 0, queue)
    fence = device.create("fence", new("VkFenceCreateInfo"))
    submission = new("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=commands)
    device.check(device.fn.vkQueueSubmit(queue[0], 1, submission, fence), "submitting the self-test")
    fences = ffi.new("VkFence[1]", [fence])
    result = device.fn.vkWaitForFences(device.handle, 1, fences, 1, _TIMEOUT_NS)
    if result == _VK_TIMEOUT:
        raise DeadlineExceededError(f"the self-test of {device.name} took more than {_TIMEOUT_NS // 10**9} seconds")
    device.check(result, "waiting for the self-test")
