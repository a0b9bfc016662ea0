"""Validation: wrong use of Vulkan becomes an error that names the objects; right use is silent."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from support.devices.host_buffers import HOST
from support.waiting import in_threads

from pumice import shaders
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.pipelines.executable import Executable
from pumice.hal_vulkan.vulkan.functions import ffi, new
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.hal_vulkan.vulkan.results import pending_validation, take_validation_errors
from pumice.hal_vulkan.vulkan.validation import validation_requested
from pumice.spirv.binary.grammar import Op
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import InternalError, InvalidArgumentError, StatusCode

pytestmark = pytest.mark.vulkan


@pytest.fixture
def validated(driver: Driver) -> Device:  # type: ignore[misc]
    if not driver.validation:
        pytest.skip("runs with PUMICE_VALIDATION=1 and the Khronos validation layers")
    with Device(driver) as device:
        yield device  # type: ignore[misc]


def overrun(device: Device, name: str) -> None:
    """Records a native fill past the end of a memory block, which the HAL itself never does."""
    buffer = device.create_buffer(64, memory_type=HOST)
    device.set_name("VK_OBJECT_TYPE_BUFFER", buffer.handle, name)
    with device.create_command_buffer(name="overrun") as commands:
        commands.begin()
        device.fn.vkCmdFillBuffer(commands._handle, buffer.handle, 1 << 40, 64, 0)
        try:
            commands.end()
        finally:
            buffer.close()


def test_whether_it_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, wanted in {
        "1": True,
        "Yes": True,
        "ON": True,
        "true": True,
        "0": False,
        "off": False,
        "": False,
    }.items():
        monkeypatch.setenv("PUMICE_VALIDATION", value)
        assert validation_requested(None) is wanted
        assert validation_requested(True) is True and validation_requested(False) is False
    for value in ("banana", "2", " "):
        monkeypatch.setenv("PUMICE_VALIDATION", value)
        with pytest.raises(InvalidArgumentError, match="PUMICE_VALIDATION"):
            validation_requested(None)
        assert validation_requested(True) is True and validation_requested(False) is False
    monkeypatch.delenv("PUMICE_VALIDATION")
    assert validation_requested(None) is False


def test_a_wrong_call_names_the_object(validated: Device) -> None:
    with pytest.raises(InternalError, match="the block in question") as caught:
        overrun(validated, "the block in question")
    assert caught.value.code is StatusCode.INTERNAL
    assert "VUID-vkCmdFillBuffer-dstOffset" in caught.value.message
    assert "objects: " in caught.value.message
    assert take_validation_errors() == []


def test_names_that_the_hal_sets(validated: Device) -> None:
    device = validated
    # A payload that does not go up, past the checks of TimelineSemaphore.signal.
    semaphore = device.create_semaphore(5, "my timeline")
    info = new("VkSemaphoreSignalInfo", semaphore=semaphore.handle, value=2)
    result = device.fn.vkSignalSemaphore(device.handle, info)
    with pytest.raises(InternalError, match="my timeline"):
        device.check(result, "signalling")
    semaphore.close()
    # A pipeline is named after its entry point.
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    with device.create_command_buffer() as commands:
        commands.begin()
        device.fn.vkCmdBindPipeline(commands._handle, 1, pipeline.handle)
        device.fn.vkCmdDispatch(commands._handle, 1, 1, 1)  # and nothing is bound
        with pytest.raises(InternalError, match=r"objects: .*main"):
            commands.end()
    # Commands by the name that they were given, kernels' calls by the kernel.
    with device.create_command_buffer(name="my commands") as commands:
        commands.begin()
        device.fn.vkCmdDispatch(commands._handle, 1, 1, 1)  # no pipeline is bound
        with pytest.raises(InternalError, match=r"objects: my commands"):
            commands.end()


def test_an_error_leaves_the_device_usable(validated: Device) -> None:
    device = validated
    for index in range(3):
        with pytest.raises(InternalError):
            overrun(device, f"block {index}")
        buffer = device.create_buffer(16, memory_type=HOST)
        with device.create_command_buffer() as commands, device.create_semaphore() as done:
            commands.begin().fill(buffer, b"\3")
            device.compute_queue.submit((commands.end(),), signals=((done, 1),))
            done.wait(1, 10)
        assert buffer.read() == b"\3" * 16 and device.lost is None
        buffer.close()


def test_the_command_buffer_of_a_wrong_call_is_reset(validated: Device) -> None:
    device = validated
    buffer = device.create_buffer(64, memory_type=HOST)
    with device.create_command_buffer() as commands:
        commands.begin()
        device.fn.vkCmdFillBuffer(commands._handle, buffer.handle, 1 << 40, 64, 0)
        with pytest.raises(InternalError):
            commands.end()
        assert commands.state.value == "initial"
        commands.begin().fill(buffer, b"\4")
        device.compute_queue.submit((commands.end(),))
        device.wait_idle(10)
    assert buffer.read() == b"\4" * 64
    buffer.close()


def test_errors_of_the_last_calls_come_out_at_close(driver: Driver) -> None:
    if not driver.validation:
        pytest.skip("runs with PUMICE_VALIDATION=1 and the Khronos validation layers")
    device = Device(driver)
    handle = ffi.new("VkSemaphore *")
    device.fn.vkCreateSemaphore(device.handle, new("VkSemaphoreCreateInfo"), ffi.NULL, handle)
    with pytest.raises(InternalError, match="VkSemaphore"):
        device.close()
    assert device.is_closed
    device.close()


def test_any_message_is_raised_by_the_next_check(device: Device) -> None:
    error = InternalError("validation layer, made up: nothing")
    pending_validation.append(error)
    pending_validation.append(InternalError("a second one of the same call"))
    with pytest.raises(InternalError, match="made up") as caught:
        device.check(0, "anything")
    assert caught.value is error
    device.check(0, "anything")
    assert take_validation_errors() == []


def test_right_use_is_silent_in_many_threads(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    pipeline = device.create_pipeline(shaders.spirv("mul"))

    def work() -> None:
        buffers = [device.create_buffer(64, memory_type=HOST) for _ in range(3)]
        with device.create_semaphore() as done:
            for value in range(1, 20):
                with device.create_command_buffer(one_shot=True) as commands:
                    commands.begin().dispatch(pipeline, buffers, (1, 1, 1))
                    device.compute_queue.submit((commands.end(),), signals=((done, value),))
                    done.wait(value, 20)
        for buffer in buffers:
            buffer.close()

    with caplog.at_level(logging.WARNING, "pumice.validation"):
        in_threads(lambda _: work(), range(6))
    assert take_validation_errors() == [] and not caplog.records


def test_an_object_that_the_layers_object_to_is_destroyed_again(validated: Device) -> None:
    before = live_objects()
    code = bytearray(shaders.spirv("mul"))
    code[4:8] = (0x00010900).to_bytes(4, "little")  # a version of SPIR-V that there is not
    words = ffi.from_buffer("uint32_t[]", bytes(code))
    with pytest.raises(InternalError, match="validation layer"):
        validated.create("shader module", new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words))
    assert live_objects() == before


def test_source_languages_that_layers_do_not_know_are_not_passed_on(validated: Device) -> None:
    """Layers have a copy of spirv-val; Slang's number, 11, is newer than many of them."""
    text = "#version 450\nlayout(local_size_x = 1) in; layout(binding = 0) buffer B { uint x[]; };"
    code = bytearray(compile_glsl(text + "void main() { x[0] = 7; }"))
    words = np.frombuffer(code, np.uint32)
    (at,) = np.flatnonzero(words == (3 << 16 | Op.Source))
    words[at + 1] = 11
    with Executable.from_spirv(validated.pipeline_context, bytes(code), validate=False) as executable:
        assert executable.pipeline().name == "main"
