"""Pipelines: interfaces, limits named before creation, specialisation, and the descriptor-set cache."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from subprocess import CalledProcessError

import numpy as np
import pytest
from support.devices.host_buffers import HOST, buffer_of, submitted
from support.devices.shader_tools import assemble, kernel_assembly
from support.waiting import in_threads

from pumice import shaders
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.memory.buffer import Buffer
from pumice.hal_vulkan.pipelines.pipeline import ComputePipeline
from pumice.hal_vulkan.pipelines.pipeline_interface import PipelineInterface
from pumice.hal_vulkan.vulkan.live_objects import live_objects
from pumice.spirv.binary.grammar import ENUMERATIONS
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources.glsl import compile_glsl, find_compiler
from pumice.status import (
    ClosedError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PumiceError,
    UnavailableError,
    UnimplementedError,
)

pytestmark = pytest.mark.vulkan
HEADER = "#version 450\n"


def glsl(text: str, **options: str) -> bytes:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    return compile_glsl(HEADER + text, **options)  # type: ignore[arg-type]


@pytest.fixture
def untouched(device: Device) -> Iterator[None]:
    """Checks that refused calls make no pipeline and leave nothing behind."""
    device.create_pipeline(shaders.spirv("mul"))
    before = live_objects()
    calls: list[int] = []
    real = device.fn.vkCreateComputePipelines
    device.fn.vkCreateComputePipelines = lambda *a: (calls.append(1), real(*a))[1]
    yield
    device.fn.vkCreateComputePipelines = real
    assert calls == [] and live_objects() == before


def run(device: Device, pipeline: ComputePipeline, buffers: list[Buffer], groups: int = 1, push: bytes = b"") -> None:
    with submitted(device, one_shot=True) as commands:
        commands.dispatch(pipeline, buffers, (groups, 1, 1), push)


# ---- what is refused before the driver sees it ----------------------------------------------------------------------


@pytest.mark.usefixtures("untouched")
def test_a_missing_capability_is_named(device: Device) -> None:
    wanted = {
        "CooperativeMatrixKHR": ("cooperativeMatrix", 'OpExtension "SPV_KHR_cooperative_matrix"'),
        "AtomicFloat16AddEXT": ("shaderBufferFloat16AtomicAdd", 'OpExtension "SPV_EXT_shader_atomic_float16_add"'),
        "AtomicFloat64AddEXT": ("shaderBufferFloat64AtomicAdd", 'OpExtension "SPV_EXT_shader_atomic_float_add"'),
    }
    tried = 0
    for capability, (feature, extension) in wanted.items():
        if feature in device.plan.features:
            continue
        try:
            code = assemble(kernel_assembly(f"OpCapability {capability}\n{extension}"))
        except CalledProcessError:  # an assembler that does not know it
            continue
        try:
            executable = device.create_executable(code, validate=False)
        except InternalError as error:  # newer validation layers say it when the module is made
            assert capability in error.message
            tried += 1
            continue
        with pytest.raises(UnimplementedError, match=f"cannot run this shader: .*{capability}") as caught:
            executable.pipeline()
        assert device.profile.name in caught.value.message
        executable.close()
        tried += 1
    assert tried


def test_a_feature_left_out_of_the_plan_is_a_missing_capability(driver: Driver) -> None:
    code = glsl("""
        #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer Out { int64_t value; } result;
        void main() { result.value = int64_t(gl_GlobalInvocationID.x) + 5L; }
    """)
    with Device(driver) as device:
        if "shaderInt64" not in device.plan.features:
            pytest.skip("the device has no 64-bit integers to leave out")
        object.__setattr__(device.plan, "features", device.plan.features - {"shaderInt64"})
        with pytest.raises(UnimplementedError, match="Int64.*shaderInt64|shaderInt64.*Int64"):
            device.create_pipeline(code)


@pytest.mark.parametrize(
    ("capability", "name", "mode", "extension"),
    [
        ("ImageGatherExtended", "shaderImageGatherExtended", "", ""),
        ("ImageCubeArray", "imageCubeArray", "", ""),
        ("StorageImageWriteWithoutFormat", "shaderStorageImageWriteWithoutFormat", "", ""),
        ("RuntimeDescriptorArray", "runtimeDescriptorArray", "", "SPV_EXT_descriptor_indexing"),
        ("Int64Atomics", "shaderBufferInt64Atomics", "", ""),
        ("AtomicFloat32AddEXT", "shaderImageFloat32AtomicAdd", "", "SPV_EXT_shader_atomic_float_add"),
        ("DotProductInput4x8BitPacked", "shaderIntegerDotProduct", "", "SPV_KHR_integer_dot_product"),
        ("Geometry", "geometryShader", "", ""),
        *(
            (f"{mode}", f"shader{mode}Float32", f"OpExecutionMode %main {mode} 32", "SPV_KHR_float_controls")
            for mode in ("SignedZeroInfNanPreserve", "RoundingModeRTE", "DenormPreserve")
        ),
    ],
)
def test_whatever_the_device_has_may_be_used(
    device: Device, capability: str, name: str, mode: str, extension: str
) -> None:
    """Features and properties alike; what it lacks is refused as the device's lack."""
    declarations = f"OpCapability {capability}\n" + (f'OpExtension "{extension}"' if extension else "")
    code = assemble(kernel_assembly(declarations, decorations=mode), "vulkan1.1")
    if name in device.profile.features | device.profile.properties:
        device.create_pipeline(code).close()
    else:
        with pytest.raises(UnimplementedError, match=f"{capability} needs .*{name}.*the device or its driver lacks it"):
            device.create_pipeline(code)


def test_what_the_device_lacks_comes_before_what_the_validator_knows(device: Device) -> None:
    if "shaderBFloat16Type" in device.plan.features:
        pytest.skip("the device has bfloat16")
    number = ENUMERATIONS["Capability"].BFloat16TypeKHR
    declarations = f'OpCapability !{number}\nOpExtension "SPV_KHR_bfloat16"'
    with pytest.raises(UnimplementedError, match=r"BFloat16TypeKHR needs .*shaderBFloat16Type.*driver lacks it"):
        device.create_executable(assemble(kernel_assembly(declarations)))
    with pytest.raises(UnimplementedError, match=r"pumice does not know SPIR-V capability Capability\(60000\)"):
        device.create_executable(assemble(kernel_assembly("OpCapability !60000")))


def test_instruction_sets_of_extensions_need_them(device: Device) -> None:
    """glslang imports them without a declaration, and drivers without them fail with an unknown error."""
    name = "SPV_AMD_shader_trinary_minmax"
    code = assemble(kernel_assembly(f'%amd = OpExtInstImport "{name}"'))
    if "VK_AMD_shader_trinary_minmax" in device.plan.extensions:
        device.create_pipeline(code).close()
    else:
        with pytest.raises(UnimplementedError, match=f"{name} needs VK_AMD_shader_trinary_minmax"):
            device.create_pipeline(code)


@pytest.mark.usefixtures("untouched")
def test_workgroups_that_are_too_large(device: Device) -> None:
    code = glsl("layout(local_size_x_id = 0, local_size_y_id = 1) in; void main() {}")
    limits = device.profile.limits
    executable = device.create_executable(code)
    x, invocations = limits.max_compute_work_group_size[0], limits.max_compute_work_group_invocations
    for wrong in ({0: x + 1, 1: 1}, {0: x, 1: invocations // x + 1}, {0: 1 << 31, 1: 1}, {0: 65536, 1: 65536}):
        with pytest.raises(InvalidArgumentError, match="workgroup size .* is more than") as caught:
            executable.pipeline(specialization=wrong)
        assert str(invocations) in caught.value.message
    with pytest.raises(InvalidArgumentError, match="is 0 in x; specialization constants that set it: 0"):
        executable.pipeline(specialization={0: 0, 1: 1})
    executable.close()
    fixed = glsl(f"layout(local_size_x = {x}, local_size_y = 64) in; void main() {{}}")
    with pytest.raises(InvalidArgumentError, match="workgroup size"):
        device.create_pipeline(fixed)


@pytest.mark.usefixtures("untouched")
def test_other_limits(device: Device) -> None:
    limits = device.profile.limits
    words = limits.max_push_constants_size // 4 + 1
    shared_words = limits.max_compute_shared_memory_size // 4 + 1
    many = limits.max_per_stage_descriptor_storage_buffers + 1
    sets = limits.max_bound_descriptor_sets
    block = "layout(set = {s}, binding = {b}) buffer B{s}_{b} {{ uint v; }} b{s}_{b};"
    cases = {
        "push constants": f"layout(push_constant) uniform P {{ uint v[{words}]; }} p; "
        + block.format(s=0, b=0)
        + f" void main() {{ b0_0.v = p.v[{words - 1}]; }}",
        "shared memory": f"shared uint s[{shared_words}]; {block.format(s=0, b=0)}"
        " void main() { s[gl_LocalInvocationID.x] = 1u; b0_0.v = s[0]; }",
        "storage buffers": "".join(block.format(s=0, b=i) for i in range(many))
        + f" void main() {{ {' '.join(f'b0_{i}.v = {i}u;' for i in range(many))} }}",
        "descriptor sets": block.format(s=sets, b=0) + f" void main() {{ b{sets}_0.v = 1u; }}",
    }
    if many > 2000:
        del cases["storage buffers"]
    for what, text in cases.items():
        with pytest.raises(InvalidArgumentError, match=what):
            device.create_pipeline(glsl(text))


def test_a_descriptor_type_that_is_not_bound_is_named() -> None:
    entry = reflect(shaders.spirv("mul")).entry_points[0]
    kind = {"descriptor_type": 1000150000, "descriptor_type_name": "acceleration_structure"}
    forged = replace(entry, bindings=(replace(entry.bindings[0], **kind),))
    with pytest.raises(UnimplementedError, match="set 0 binding 0 .*is acceleration_structure"):
        PipelineInterface.from_reflection(forged)


@pytest.mark.usefixtures("untouched")
def test_other_stages_and_entry_points(device: Device) -> None:
    fragment = glsl("layout(location = 0) out vec4 c; void main() { c = vec4(1); }", stage="frag")
    with pytest.raises(InvalidArgumentError, match="Fragment shader"):
        device.create_pipeline(fragment, "main")
    with pytest.raises(NotFoundError, match="'main' .Fragment."):
        device.create_pipeline(fragment)
    with pytest.raises(NotFoundError, match="main"):
        device.create_pipeline(shaders.spirv("mul"), "nain")
    for code in (b"", b"VKE", b"\x03\x02\x23\x07", b"not spir-v at all...", bytes(100)):
        with pytest.raises(InvalidArgumentError):
            device.create_pipeline(code)


@pytest.mark.usefixtures("untouched")
def test_a_subgroup_size_the_device_does_not_run(device: Device) -> None:
    subgroup = device.profile.subgroup
    sizes = [1 << n for n in range(8) if subgroup.min_size <= 1 << n <= subgroup.max_size]
    if not device.plan.required_subgroup_size:
        sizes = [subgroup.size]
    there = " and ".join(filter(None, (", ".join(map(str, sizes[:-1])), str(sizes[-1]))))
    for size in (subgroup.max_size * 2, 1 << 20, 3 * subgroup.max_size, subgroup.max_size + 1):
        with pytest.raises(UnimplementedError, match=f"subgroup size {size} was asked for; .* has {there}"):
            device.create_pipeline(shaders.spirv("mul"), subgroup_size=size)


def test_a_subgroup_size_the_device_runs(device: Device) -> None:
    pipeline = device.create_pipeline(shaders.spirv("mul"), subgroup_size=device.profile.subgroup.size)
    a = np.arange(10, dtype=np.float32)
    buffers = [buffer_of(device, a) for _ in range(3)]
    run(device, pipeline, buffers)
    np.testing.assert_array_equal(np.frombuffer(buffers[2].read(), np.float32), a * a)


def test_full_subgroups_and_sizes_that_vary(device: Device) -> None:
    most = device.profile.subgroup.max_size
    local = "layout(local_size_x = {}) in;"
    body = "layout(binding = 0) buffer B { uint b[]; }; void main() { b[gl_GlobalInvocationID.x] = 1; }"
    whole, part = (glsl(local.format(x) + body) for x in (most, most + most // 2 + 1))
    for varying in (False, True):
        with device.create_executable(whole) as executable:
            pipeline = executable.pipeline(full_subgroups=True, varying_subgroup_size=varying)
            buffers = [buffer_of(device, np.zeros(2 * most, np.uint32))]
            run(device, pipeline, buffers, 2)
            assert np.frombuffer(buffers[0].read(), np.uint32).all()
        with device.create_executable(part) as executable, pytest.raises(InvalidArgumentError, match="multiple of"):
            executable.pipeline(full_subgroups=True, varying_subgroup_size=varying)
    with device.create_executable(whole) as executable, pytest.raises(InvalidArgumentError, match="exclude each"):
        executable.pipeline(varying_subgroup_size=True, subgroup_size=most)


def test_a_driver_that_fails_leaves_nothing(device: Device) -> None:
    device.create_pipeline(shaders.spirv("mul")).close()
    before = live_objects()
    real = device.fn.vkCreateComputePipelines
    device.fn.vkCreateComputePipelines = lambda *_: -13
    for _ in range(3):
        with pytest.raises(PumiceError, match="creating the pipeline of main"):
            device.create_pipeline(shaders.spirv("mul"))
    device.fn.vkCreateComputePipelines = real
    assert live_objects() == before


# ---- specialisation -------------------------------------------------------------------------------------------------

SPECIALISED = """
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint a = 7u;
layout(constant_id = 1) const int b = -8;
layout(constant_id = 2) const float c = 1.5;
layout(constant_id = 3) const bool d = true;
layout(constant_id = 9) const double e = 0.1;
layout(set = 0, binding = 0) buffer Out { uint a; int b; float c; uint d; double e; } result;
void main() {
    result.a = a; result.b = b; result.c = c; result.d = d ? 1u : 0u; result.e = e;
}
"""


def specialised(device: Device, **values: float) -> tuple[float, ...]:
    code = glsl(SPECIALISED)
    ids = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 9}
    pipeline = device.create_pipeline(code, specialization={ids[name]: value for name, value in values.items()})
    with device.create_buffer(24, memory_type=HOST) as buffer:
        run(device, pipeline, [buffer])
        a, b, c, d, e = struct.unpack("<IifId", buffer.read())
    pipeline.close()
    return a, b, c, d, e


def test_specialisation_in_every_type(device: Device) -> None:
    if "shaderFloat64" not in device.plan.features:
        pytest.skip("the shader has a double")
    default = (7, -8, 1.5, 1, 0.1)
    assert specialised(device) == default
    assert specialised(device, a=2**32 - 1, b=-(2**31), c=-0.25, d=False, e=1e300) == (
        2**32 - 1,
        -(2**31),
        -0.25,
        0,
        1e300,
    )
    assert specialised(device, c=3) == (7, -8, 3.0, 1, 0.1)
    assert specialised(device, a=5.0, d=1, b=True) == (5, 1, 1.5, 1, 0.1)
    assert math.isinf(specialised(device, c=math.inf)[2]) and math.isnan(specialised(device, e=math.nan)[4])


def test_pipelines_are_kept_by_the_bits_of_their_constants(device: Device) -> None:
    code = glsl(
        """
        layout(local_size_x = 1) in;
        layout(constant_id = 2) const float c = 1.5;
        layout(set = 0, binding = 0) buffer Out { float c; } result;
        void main() { result.c = c; }
        """
    )
    with device.create_executable(code) as executable, device.create_buffer(4, memory_type=HOST) as buffer:

        def made(value: float) -> ComputePipeline:
            return executable.pipeline(specialization={2: value})

        for zero in (0.0, -0.0):
            run(device, made(zero), [buffer])
            assert math.copysign(1, struct.unpack("<f", buffer.read())[0]) == math.copysign(1, zero)
        assert made(0.0) is not made(-0.0)
        assert made(float("nan")) is made(float("nan"))
        assert made(3) is made(3.0)


@pytest.mark.features("shaderFloat64")
@pytest.mark.parametrize(
    ("values", "error", "says"),
    [
        ({17: 1}, NotFoundError, r"no specialization constant 17; it has: 0 \(a\), 1 \(b\)"),
        ({-1: 1}, NotFoundError, "no specialization constant -1"),
        ({0: -1}, InvalidArgumentError, "constant 0 .a. is a 32-bit uint; -1 does not fit"),
        ({0: 2**32}, InvalidArgumentError, "does not fit"),
        ({0: 1.5}, InvalidArgumentError, "32-bit uint, got 1.5"),
        ({1: 2**31}, InvalidArgumentError, "does not fit"),
        ({1: math.nan}, InvalidArgumentError, "constant 1"),
        ({1: math.inf}, InvalidArgumentError, "constant 1"),
        ({2: "1.0"}, InvalidArgumentError, "takes a number, got str"),
        ({2: None}, InvalidArgumentError, "takes a number, got NoneType"),
        ({2: 1e300}, InvalidArgumentError, "does not fit"),
        ({2: 10**400}, InvalidArgumentError, "does not fit"),
        ({3: "yes"}, InvalidArgumentError, "takes a number"),
    ],
)
@pytest.mark.usefixtures("untouched")
def test_wrong_specialisation(device: Device, values: dict[int, float], error: type[PumiceError], says: str) -> None:
    code = glsl(SPECIALISED)
    with pytest.raises(error, match=says):
        device.create_pipeline(code, specialization=values)


@pytest.mark.parametrize("value", ["x", None, math.nan, math.inf, 1.5, -1, 2**40])
@pytest.mark.usefixtures("untouched")
def test_wrong_specialisation_of_the_workgroup_size(device: Device, value: object) -> None:
    code = glsl("layout(local_size_x_id = 0) in; void main() {}")
    with pytest.raises(InvalidArgumentError):
        device.create_pipeline(code, specialization={0: value})  # type: ignore[dict-item]


def test_the_workgroup_size_follows_its_constant(device: Device) -> None:
    code = glsl("""
        layout(local_size_x_id = 4) in;
        layout(set = 0, binding = 0) buffer Out { uint count; } result;
        void main() { atomicAdd(result.count, 1u); }
    """)
    executable = device.create_executable(code)
    for size in (1, 32, 100):
        pipeline = executable.pipeline(specialization={4: size})
        assert pipeline.local_size == (size, 1, 1) and pipeline is executable.pipeline(specialization={4: size})
        buffer = buffer_of(device, np.zeros(1, np.uint32))
        run(device, pipeline, [buffer], 3)
        assert np.frombuffer(buffer.read(), np.uint32)[0] == 3 * size
        buffer.close()


# ---- interfaces -----------------------------------------------------------------------------------------------------


def test_sets_bindings_and_arrays_in_order(device: Device) -> None:
    code = glsl("""
        layout(local_size_x = 1) in;
        layout(set = 2, binding = 5) buffer C { uint v; } c;
        layout(set = 0, binding = 7) buffer B { uint v; } b[2];
        layout(set = 0, binding = 1) uniform A { uint v; } a;
        void main() { c.v = a.v + 10u * b[0].v + 100u * b[1].v; }
    """)
    pipeline = device.create_pipeline(code)
    assert pipeline.interface.binding_count == 4 and len(pipeline.set_layouts) == 3
    assert pipeline.interface.set_layouts[1] == ()
    buffers = [buffer_of(device, np.full(64, value, np.uint32)) for value in (1, 2, 3, 0)]
    run(device, pipeline, buffers)
    assert np.frombuffer(buffers[3].read(), np.uint32)[0] == 321
    assert pipeline.binding(2, 5).count == 1 and pipeline.binding(0, 7).count == 2
    with pytest.raises(NotFoundError, match=r"\(0, 1\), \(0, 7\), \(2, 5\)"):
        pipeline.binding(1, 1)


def test_uniform_buffers_have_a_limit_of_their_own(device: Device) -> None:
    code = glsl("""
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) uniform A { uint v; } a;
        layout(set = 0, binding = 1) buffer B { uint v; } b;
        void main() { b.v = a.v; }
    """)
    pipeline = device.create_pipeline(code)
    most = device.profile.limits.max_uniform_buffer_range
    if most > 64 << 20:
        pytest.skip("the limit is too large to try")
    big, small = device.create_buffer(most + 16, memory_type=HOST), device.create_buffer(16, memory_type=HOST)
    big.write(struct.pack("<I", 77))
    with pytest.raises(OutOfRangeError, match="maxUniformBufferRange"):
        pipeline.bind([big, small])
    run(device, pipeline, [big.subspan(0, most), small])
    assert small.read(0, 4) == struct.pack("<I", 77)
    step = device.profile.limits.min_uniform_buffer_offset_alignment
    if step > 4:
        with pytest.raises(InvalidArgumentError, match=f"multiples of {step}"):
            pipeline.bind([big.subspan(4, 16), small])


def test_push_constants_of_two_bytes(device: Device) -> None:
    if "storagePushConstant16" not in device.plan.features:
        pytest.skip("the device has no 16-bit push constants")
    code = glsl("""
        #extension GL_EXT_shader_16bit_storage : require
        layout(local_size_x = 1) in;
        layout(push_constant) uniform P { uint16_t value; } push;
        layout(set = 0, binding = 0) buffer B { uint v; } b;
        void main() { b.v = uint(push.value); }
    """)
    pipeline = device.create_pipeline(code)
    size = pipeline.interface.push_constant_bytes
    with device.create_buffer(4, memory_type=HOST) as buffer:
        run(device, pipeline, [buffer], push=struct.pack("<H", 51234).ljust(size, b"\0"))
        assert buffer.read() == struct.pack("<I", 51234)


def test_a_kernel_without_buffers(device: Device) -> None:
    run(device, device.create_pipeline(shaders.spirv("builtin/empty")), [], 100)


def test_pipelines_share_layouts(device: Device) -> None:
    first, second = (device.create_pipeline(shaders.spirv("mul")) for _ in range(2))
    assert first.layout == second.layout and first.set_layouts == second.set_layouts
    buffers = [buffer_of(device, np.full(64, value, np.float32)) for value in (2, 3, 0)]
    bound = first.bind(buffers)
    run(device, second, bound)  # type: ignore[arg-type]
    assert np.frombuffer(buffers[2].read(), np.float32)[0] == 6


@pytest.mark.parametrize("function", ["vkCreateComputePipelines", "vkCreateShaderModule", "vkCreatePipelineLayout"])
def test_ctrl_c_during_a_native_call_leaves_nothing(
    device: Device, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python raises it when the call has returned, and its result is lost; the fixture sees what is left."""
    real = getattr(device.fn, function)

    def interrupted(*arguments: object) -> int:
        assert real(*arguments) == 0
        raise KeyboardInterrupt

    monkeypatch.setattr(device.fn, function, interrupted)
    with pytest.raises(KeyboardInterrupt):
        device.create_pipeline(shaders.spirv("mul"))


def test_pipelines_made_in_many_threads(device: Device) -> None:
    executable = device.create_executable(shaders.spirv("examples/reduction"))
    made: list[ComputePipeline] = []

    def work() -> None:
        made.append(executable.pipeline(specialization={0: 64}))
        device.create_pipeline(shaders.spirv("mul")).close()

    in_threads(lambda _: work(), range(8))
    assert len(set(map(id, made))) == 1


# ---- descriptor sets ------------------------------------------------------------------------------------------------


@pytest.fixture
def few_sets(driver: Driver) -> Iterator[Device]:
    with Device(driver, options=PlanOptions(push_descriptors=False, block_size=64 << 10)) as device:
        object.__setattr__(device.plan, "descriptor_pool_size", 8)
        yield device


@pytest.mark.parametrize("push", [True, False])
def test_a_repeated_call_allocates_nothing(driver: Driver, push: bool) -> None:
    with Device(driver, options=PlanOptions(push_descriptors=None if push else False)) as device:
        repeat(device)


def repeat(device: Device) -> None:
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    buffers = [buffer_of(device, np.ones(64, np.float32)) for _ in range(3)]
    for _ in range(12):
        run(device, pipeline, buffers)
    device.retire()
    layout, before = pipeline.set_layouts[0], live_objects()
    sets = 0 if pipeline.push_template is not None else 1
    assert len(layout._sets) == sets
    spied: list[str] = []
    real = device.fn.vkUpdateDescriptorSetWithTemplate
    device.fn.vkUpdateDescriptorSetWithTemplate = lambda *a: (spied.append("write"), real(*a))[1]
    for _ in range(100):
        run(device, pipeline, buffers)
    device.retire()
    device.fn.vkUpdateDescriptorSetWithTemplate = real
    assert spied == [] and len(layout._sets) == sets and live_objects() == before


def test_thousands_of_bindings_are_evicted(few_sets: Device) -> None:
    device = few_sets
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    layout = pipeline.set_layouts[0]
    values = [buffer_of(device, np.full(4, value, np.float32)) for value in range(50)]
    out = [buffer_of(device, np.zeros(4, np.float32)) for _ in range(4)]
    for index in range(2500):
        a, b, c = values[index % 50], values[index // 50], out[index % 4]
        with device.create_command_buffer(one_shot=True) as commands:
            commands.begin().dispatch(pipeline, [a, b, c], (1, 1, 1))
            device.compute_queue.submit((commands.end(),))
        if index % 100 == 99:
            device.wait_idle(10)
            assert np.frombuffer(c.read(), np.float32)[0] == (index % 50) * (index // 50)
    device.wait_idle(10)
    device.retire()
    assert len(layout._sets) <= 32 + 3000 // 4
    pools = live_objects()["descriptor pool"]
    for index in range(600):
        pipeline.bind([values[index % 50], values[index % 7], values[index % 11]]).close()
    assert live_objects()["descriptor pool"] == pools


def test_pinned_sets_are_never_written_again(few_sets: Device) -> None:
    device = few_sets
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    recorded = []
    for value in range(100):  # three times what the cache holds
        a, b = buffer_of(device, np.full(4, value, np.float32)), buffer_of(device, np.full(4, 2, np.float32))
        out = buffer_of(device, np.zeros(4, np.float32))
        commands = device.create_command_buffer()
        commands.begin().dispatch(pipeline, [a, b, out], (1, 1, 1))
        recorded.append((commands.end(), out, a, b))
    for commands, *_ in recorded:
        device.compute_queue.submit((commands,))
    device.wait_idle(10)
    for value, (commands, out, *_) in enumerate(recorded):
        assert np.frombuffer(out.read(), np.float32).tolist() == [2.0 * value] * 4
        commands.close()


def test_a_freed_block_takes_its_sets_along(few_sets: Device) -> None:
    device = few_sets
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    layout = pipeline.set_layouts[0]
    keep = buffer_of(device, np.ones(4, np.float32))
    for _ in range(300):  # each of 32 KiB, and so with memory of its own
        big = device.create_buffer(32 << 10, memory_type=HOST)
        pipeline.bind([keep, keep, big]).close()
        big.close()
        assert len(layout._sets) == 0
    assert live_objects()["descriptor pool"] == 1
    big = device.create_buffer(32 << 10, memory_type=HOST)
    bound = pipeline.bind([keep, keep, big])
    big.close()
    assert len(layout._sets) == 0
    with device.create_command_buffer() as commands:
        commands.begin()
        with pytest.raises(ClosedError):
            commands.dispatch(pipeline, bound, (1, 1, 1))
    bound.close()
    bound.close()
    keep.close()


def test_a_closed_pipeline(device: Device) -> None:
    pipeline = device.create_pipeline(shaders.spirv("mul"))
    assert "local size (64, 1, 1), 3 descriptors" in repr(pipeline)
    pipeline.close()
    pipeline.close()
    assert pipeline.is_closed and repr(pipeline).startswith("<closed")
    with pytest.raises(ClosedError, match="pipeline main was closed"):
        pipeline.bind([device.create_buffer(4)] * 3)


def test_a_uniform_buffer_smaller_than_its_block_is_refused_where_pipelines_are_sanitised(device: Device) -> None:
    code = glsl(
        "layout(local_size_x = 1) in;\nlayout(binding = 0) uniform U { vec4 a[3]; };\n"
        "layout(binding = 1) buffer B { float b; };\nvoid main() { b = a[2].w; }"
    )
    with (
        device.create_executable(code, sanitize=True) as executable,
        device.create_buffer(16) as small,
        device.create_buffer(48) as large,
    ):
        pipeline = executable.pipeline()
        pipeline.bind([large, small]).close()
        with pytest.raises(OutOfRangeError, match="binding 0 has 48 bytes, and the buffer that is bound 16"):
            pipeline.bind([small, large])
    with device.create_executable(code) as executable, device.create_buffer(16) as small:
        executable.pipeline().bind([small, small]).close()
