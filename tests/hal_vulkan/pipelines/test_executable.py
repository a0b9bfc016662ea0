"""Executables: from SPIR-V, from VKE1 blobs, and from what the IREE compiler writes, run with both dispatch ABIs."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from support.devices.features import require_features
from support.devices.host_buffers import buffer_of, submitted
from support.peer import compile_module

from pumice import shaders
from pumice.formats.vke1 import (
    STAGE_COMPUTE,
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    ExecutableDef,
    ExportDebugInfo,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
)
from pumice.formats.vke1_writer import build_executable
from pumice.hal.command_buffer import BindingSlot
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.status import (
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PumiceError,
    UnimplementedError,
)

pytestmark = pytest.mark.vulkan
HEADER_BYTES = 64

# Each function becomes one dispatch.
PROGRAMS = {
    "multiply": """
func.func @multiply(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.mulf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
""",
    "row_sums": """
func.func @row_sums(%a: tensor<48x96xf32>) -> tensor<48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<48xf32>) -> tensor<48xf32>
  %sums = linalg.reduce ins(%a : tensor<48x96xf32>) outs(%init : tensor<48xf32>) dimensions = [1]
    (%in: f32, %acc: f32) { %s = arith.addf %in, %acc : f32 linalg.yield %s : f32 }
  return %sums : tensor<48xf32>
}
""",
    "matmul": """
func.func @matmul(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x8xf32>) outs(%c : tensor<16x8xf32>)
    -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
""",
    "scaled": """
func.func @scaled(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.mulf %a, %b : tensor<?xf32>
  %1 = arith.addf %0, %a : tensor<?xf32>
  return %1 : tensor<?xf32>
}
""",
}


def spirv_executable(*names: str) -> bytes:
    """A VKE1 blob of shaders that ship, each with its storage buffers in set 0."""
    definitions = []
    layouts, pipeline_layouts = [], []
    for index, name in enumerate(names):
        with_push = name.endswith("saxpy")
        count = 2 if with_push else 3
        layouts.append(DescriptorSetLayoutDef(tuple(DescriptorBindingDef(i) for i in range(count))))
        ranges = (PushConstantRange(STAGE_COMPUTE, 0, 4),) if with_push else ()
        pipeline_layouts.append(PipelineLayoutDef((index,), ranges))
        definitions.append(PipelineDef(index, "main", index, debug_info=ExportDebugInfo(f"export {name}", None)))
    return build_executable(
        ExecutableDef(
            pipelines=tuple(definitions),
            descriptor_set_layouts=tuple(layouts),
            pipeline_layouts=tuple(pipeline_layouts),
            shader_modules=tuple(memoryview(shaders.spirv(name)) for name in names),
        )
    )


# ---- built blobs ----------------------------------------------------------------------------------------------------


def test_a_blob_with_two_pipelines(any_device: Device) -> None:
    device = any_device
    executable = device.create_executable(spirv_executable("mul", "examples/saxpy"))
    assert len(executable.reflections) == 2 and "VKE1, 2 pipelines" in repr(executable)
    multiply, saxpy = executable.pipeline_at(0), executable.pipeline_at(1)
    assert multiply is executable.pipeline_at(0) and saxpy.name == "export examples/saxpy"
    a, b = np.arange(64, dtype=np.float32), np.full(64, 0.5, np.float32)
    buffers = [buffer_of(device, array) for array in (a, b, np.zeros(64, np.float32))]
    with submitted(device) as commands:
        commands.dispatch(multiply, buffers, (1, 1, 1))
        commands.execution_barrier()
        commands.dispatch(saxpy, [buffers[0], buffers[2]], (1, 1, 1), struct.pack("<f", 2.0))
    np.testing.assert_array_equal(np.frombuffer(buffers[2].read(), np.float32), a * b + 2 * a)
    for wrong in (-1, 2, 100):
        with pytest.raises(OutOfRangeError, match="2 pipeline"):
            executable.pipeline_at(wrong)


def test_spirv_and_vke1_are_told_apart(device: Device) -> None:
    code = shaders.spirv("mul")
    for data in (code, bytearray(code), memoryview(code)):
        with device.create_executable(data) as executable:
            assert executable.source is None and executable.pipeline() is executable.pipeline()
            assert executable.pipeline("main").entry.name == "main"
            with pytest.raises(OutOfRangeError, match=r"0 pipeline\(s\) by ordinal"):
                executable.pipeline_at(0)
            with pytest.raises(NotFoundError):
                executable.pipeline("nothing")
    blob = spirv_executable("mul")
    for data in (blob, bytearray(blob), memoryview(blob)):
        with device.create_executable(data) as executable:
            assert executable.source is not None


def test_damaged_blobs_leave_nothing(device: Device) -> None:
    blob = spirv_executable("mul", "examples/saxpy")
    device.create_executable(blob).close()
    before = live_objects()
    refused = 0
    source = np.random.default_rng(11)
    cuts = [blob[:size] for size in (0, 1, 4, 63, 64, 100, len(blob) - 50)]
    flips = []
    for _ in range(60):
        damaged = bytearray(blob)
        damaged[int(source.integers(0, 400))] ^= int(source.integers(1, 256))
        flips.append(bytes(damaged))
    for data in [*cuts, *flips, b"VKE1", b"VKE1" * 100, b"\x03\x02\x23\x07" * 9]:
        try:
            device.create_executable(data).close()
        except PumiceError:
            refused += 1
    assert refused >= len(cuts)
    assert {k: v for k, v in live_objects().items() if "layout" not in k and "template" not in k} == {
        k: v for k, v in before.items() if "layout" not in k and "template" not in k
    }


def test_a_blob_that_fails_half_way_leaves_nothing(device: Device) -> None:
    blob = spirv_executable("mul", "examples/saxpy")
    device.create_executable(blob).close()
    before = live_objects()
    real = device.fn.vkCreateComputePipelines
    calls: list[int] = []

    def second_fails(*arguments: object) -> int:
        calls.append(1)
        return -1 if len(calls) == 2 else real(*arguments)

    device.fn.vkCreateComputePipelines = second_fails
    with pytest.raises(PumiceError, match="creating the pipeline of export examples/saxpy"):
        device.create_executable(blob)
    device.fn.vkCreateComputePipelines = real
    assert live_objects() == before
    real = device.fn.vkCreateShaderModule
    calls.clear()
    device.fn.vkCreateShaderModule = lambda *a: (calls.append(1), -2 if len(calls) == 2 else real(*a))[1]
    with pytest.raises(PumiceError, match="creating a shader module"):
        device.create_executable(blob)
    device.fn.vkCreateShaderModule = real
    assert live_objects() == before


def test_invalid_spirv_is_stopped_by_the_validator(device: Device) -> None:
    code = bytearray(shaders.spirv("mul"))
    before = live_objects()
    refused = 0
    source = np.random.default_rng(3)
    for _ in range(12):
        damaged = bytearray(code)
        for _ in range(3):
            word = 5 + int(source.integers(0, len(code) // 4 - 6))
            struct.pack_into("<I", damaged, 4 * word, int(source.integers(0, 2**32)))
        try:
            device.create_executable(bytes(damaged)).close()
        except PumiceError:
            refused += 1
    assert refused and live_objects() == before


def test_use_after_close(device: Device) -> None:
    executable = device.create_executable(shaders.spirv("mul"))
    pipeline = executable.pipeline()
    executable.close()
    executable.close()
    assert executable.is_closed and pipeline.is_closed and repr(executable).startswith("<closed")
    for call in (executable.pipeline, lambda: executable.pipeline("main"), lambda: executable.pipeline_at(0)):
        with pytest.raises((ClosedError, OutOfRangeError)):
            call()
    executable = device.create_executable(spirv_executable("mul"))
    executable.close()
    with pytest.raises(ClosedError):
        executable.pipeline_at(0)


def test_pipelines_outlive_their_modules(device: Device) -> None:
    executable = device.create_executable(shaders.spirv("mul"))
    pipeline = executable.pipeline()
    executable.close_modules()
    executable.close_modules()
    assert executable.pipeline() is pipeline
    with pytest.raises(ClosedError, match="no more pipelines"):
        executable.pipeline("main")
    buffers = [buffer_of(device, np.full(4, 3, np.float32)) for _ in range(3)]
    with submitted(device) as commands:
        commands.dispatch(pipeline, buffers, (1, 1, 1))
    assert np.frombuffer(buffers[2].read(), np.float32).tolist() == [9.0] * 4


def test_a_pipeline_closed_on_its_own_is_made_again(device: Device) -> None:
    with device.create_executable(shaders.spirv("mul")) as executable:
        first = executable.pipeline()
        first.close()
        second = executable.pipeline()
        assert second is not first and not second.is_closed
    with device.create_executable(spirv_executable("mul")) as executable:
        first = executable.pipeline_at(0)
        first.close()
        assert not executable.pipeline_at(0).is_closed


# ---- what the compiler writes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of one function.

    Attributes:
        blobs: the VKE1 executable by ABI.
        groups: workgroup counts of its one dispatch, or ``None`` where they depend on the shapes.
    """

    blobs: dict[str, bytes]
    groups: tuple[int, int, int] | None


@pytest.fixture(scope="module")
def compiled() -> dict[str, Compiled]:
    """Executables and counts by program: cut out of compiled modules, and out of the compiler's own text."""
    kinds = {"descriptors": [], "bda": ["--iree-vulkan-dispatch-abi=bda"], "text": ["--compile-to=hal"]}
    outputs = {
        (name, kind): compile_module(text, *flags, name=f"{name}.mlir").read_bytes()
        for name, text in PROGRAMS.items()
        for kind, flags in kinds.items()
    }
    made = {}
    for name in PROGRAMS:
        blobs = {}
        for abi in ("descriptors", "bda"):
            data = outputs[name, abi]
            start = data.index(b"VKE1")
            (size,) = struct.unpack_from("<Q", data, start + 8)
            blobs[abi] = data[start : start + HEADER_BYTES + size]
        counts = re.search(r"workgroups\(\[%c(\d+), %c(\d+), %c(\d+)\]\)", outputs[name, "text"].decode())
        x, y, z = map(int, counts.groups()) if counts else (0, 0, 0)
        made[name] = Compiled(blobs, (x, y, z) if counts else None)
    return made


def data_for(name: str) -> tuple[list[np.ndarray], np.ndarray, bytes]:
    """The buffers a kernel reads, what it should write, and the dispatch constants: its dynamic sizes, 64 bits each."""
    source = np.random.default_rng(len(name))

    def floats(*shape: int) -> np.ndarray:
        return source.standard_normal(shape, np.float32)

    if name == "multiply":
        a, b = floats(4), floats(4)
        return [a, b], a * b, b""
    if name == "row_sums":
        a = floats(48, 96)
        return [a], a.astype(np.float64).sum(1).astype(np.float32), b""
    if name == "matmul":
        a, b, c = floats(16, 32), floats(32, 8), floats(16, 8)
        return [a, b, c], (a.astype(np.float64) @ b + c).astype(np.float32), b""
    a, b = floats(1000), floats(1000)
    return [a, b], a * b + a, struct.pack("<QQ", 1000, 1000)


@pytest.mark.sample(10)
@pytest.mark.peer
@pytest.mark.parametrize("slots", [False, True], ids=["buffers", "slots"])
@pytest.mark.parametrize("abi", ["sets", "push", "bda"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_kernels_against_numpy(
    driver: Driver, compiled: dict[str, Compiled], name: str, abi: str, slots: bool
) -> None:
    with Device(driver, options=PlanOptions(push_descriptors=False if abi == "sets" else None)) as device:
        if abi == "bda":
            require_features(device, "bufferDeviceAddress", "shaderInt64")
        executable = device.create_executable(compiled[name].blobs["bda" if abi == "bda" else "descriptors"])
        assert executable.source is not None and len(executable.source.pipelines) == 1
        pipeline = executable.pipeline_at(0)
        arrays, expected, push = data_for(name)
        groups = compiled[name].groups or (-(-expected.size // pipeline.local_size[0]), 1, 1)
        inputs = [buffer_of(device, array) for array in arrays]
        outputs = [buffer_of(device, np.full(expected.size, np.nan, np.float32)) for _ in range(2)]
        if name == "matmul":  # the compiler makes the accumulator the output
            assert pipeline.interface.binding_count == 3
            inputs.pop()
            for output in outputs:
                output.write(arrays[2].tobytes())
        assert pipeline.interface.binding_count == len(inputs) + 1
        count = len(inputs) + 1 if slots else 0
        with device.create_command_buffer(binding_capacity=count) as commands:
            for output in outputs:
                if output is outputs[0] or not slots:
                    bindings = [BindingSlot(i) for i in range(count)] or [*inputs, output]
                    commands.begin().dispatch(pipeline, bindings, groups, push)
                    commands.end()
                device.compute_queue.submit((commands,), bindings=[*inputs, output] if slots else None)
            device.wait_idle(20)
        for output in outputs:
            result = np.frombuffer(output.read(), np.float32).reshape(expected.shape)
            np.testing.assert_allclose(result, expected, 1e-4, 1e-4)
        executable.close()


@pytest.mark.features("shaderInt64")
@pytest.mark.peer
def test_the_address_abi_checks_what_it_is_given(device: Device, compiled: dict[str, Compiled]) -> None:
    if not device.device_addresses:
        pytest.skip("the device has no buffer device addresses")
    executable = device.create_executable(compiled["multiply"].blobs["bda"])
    pipeline = executable.pipeline_at(0)
    assert pipeline.interface.buffer_device_addresses and pipeline.set_layouts == ()
    buffers = [buffer_of(device, np.ones(4, np.float32)) for _ in range(3)]
    closed = buffer_of(device, np.ones(4, np.float32))
    closed.close()
    with device.create_command_buffer() as commands:
        commands.begin()
        with pytest.raises(InvalidArgumentError, match="takes 3 buffer"):
            commands.dispatch(pipeline, buffers[:2], (1, 1, 1))
        with pytest.raises(ClosedError):
            commands.dispatch(pipeline, [*buffers[:2], closed], (1, 1, 1))
        with pytest.raises(InvalidArgumentError, match="push constants"):
            commands.dispatch(pipeline, buffers, (1, 1, 1), bytes(4))
        commands.dispatch(pipeline, buffers, (1, 1, 1))
        bound = pipeline.bind(buffers)
        commands.dispatch(pipeline, bound, (1, 1, 1))
        commands.end()
        buffers[0].close()
        with pytest.raises(ClosedError):
            device.compute_queue.submit((commands,))


@pytest.mark.features("shaderInt64")
@pytest.mark.peer
def test_the_address_abi_in_many_threads_tables_and_subspans(device: Device, compiled: dict[str, Compiled]) -> None:
    if not device.device_addresses:
        pytest.skip("the device has no buffer device addresses")
    executable = device.create_executable(compiled["multiply"].blobs["bda"])
    pipeline = executable.pipeline_at(0)
    commands = device.create_command_buffer(binding_capacity=3)
    commands.begin().dispatch(pipeline, [BindingSlot(2, 16, 16), BindingSlot(0), BindingSlot(1)], (1, 1, 1))
    commands.end()
    source = np.random.default_rng(8)
    for _ in range(60):
        a, b = source.standard_normal(4, np.float32), source.standard_normal(8, np.float32)
        table = [buffer_of(device, a), buffer_of(device, np.zeros(4, np.float32)), buffer_of(device, b)]
        device.compute_queue.submit((commands,), bindings=table)
        device.wait_idle(10)
        np.testing.assert_array_equal(np.frombuffer(table[1].read(), np.float32), a * b[4:])
        for buffer in table:
            buffer.close()
    commands.close()
    device.retire()
    assert device.allocator.statistics().allocations <= 16  # the tables of the recordings still remembered


@pytest.mark.features("shaderInt64")
@pytest.mark.peer
def test_a_device_without_addresses_says_so(driver: Driver, compiled: dict[str, Compiled]) -> None:
    with Device(driver) as device:
        device.device_addresses = False
        before = live_objects()
        with pytest.raises(UnimplementedError, match="bufferDeviceAddress.*descriptor ABI"):
            device.create_executable(compiled["multiply"].blobs["bda"])
        assert live_objects() == before
