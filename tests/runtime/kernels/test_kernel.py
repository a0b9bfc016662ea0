"""Kernels as users call them: arguments of every kind, on mapped memory and on the staging path."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.devices.features import require_features, type_features
from support.devices.kernel_sources import ACCUMULATE
from support.devices.shader_tools import assemble

import pumice
from pumice import shaders

pytestmark = pytest.mark.vulkan

BINARY = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer In {{ {type} values[]; }};
layout(std430, binding = 1) writeonly buffer Out {{ {type} twice[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i < twice.length()) twice[i] = values[i] + values[i];
}}
"""


IMAGE_LIKE = """#version 450
layout(local_size_x = 4, local_size_y = 2, local_size_z = 2) in;
layout(std430, binding = 0) writeonly buffer Out { uint ids[]; };
layout(push_constant) uniform Push { uvec3 extent; };
void main() {
    uvec3 id = gl_GlobalInvocationID;
    if (all(lessThan(id, extent)))
        ids[(id.z * extent.y + id.y) * extent.x + id.x] = id.x + 100 * id.y + 10000 * id.z + 1;
}
"""


def arrays(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal(count, np.float32), generator.standard_normal(count, np.float32)


# -- kinds of arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3, 4, 63, 64, 65, 1000, 100_000, 300_001])
def test_numpy_in_numpy_out(mul: pumice.Kernel, count: int) -> None:
    a, b = arrays(count)
    result = mul(a, b, pumice.empty(count, np.float32))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, a * b)


@pytest.mark.parametrize("count", [5, 200_000])
def test_device_arrays_are_written_in_place(device: pumice.Device, mul: pumice.Kernel, count: int) -> None:
    a, b = arrays(count)
    x, y, z = device.asarray(a), device.asarray(b), device.empty(count)
    assert mul(x, y, z) is z
    again = mul(z, y, x)
    assert again is x
    np.testing.assert_array_equal(z.numpy(), a * b)
    np.testing.assert_array_equal(x.numpy(), a * b * b)


@pytest.mark.parametrize("count", [5, 200_000])
def test_mixed_arguments_give_device_arrays(device: pumice.Device, mul: pumice.Kernel, count: int) -> None:
    a, b = arrays(count)
    result = mul(device.asarray(a), b, pumice.empty(count, np.float32))
    assert isinstance(result, pumice.DeviceArray)
    np.testing.assert_array_equal(result.numpy(), a * b)


@pytest.mark.parametrize("count", [5, 200_000])
def test_out(device: pumice.Device, mul: pumice.Kernel, count: int) -> None:
    a, b = arrays(count)
    host = np.zeros(count, np.float32)
    assert mul(a, b, out=host) is host
    np.testing.assert_array_equal(host, a * b)
    on_device = device.empty(count)
    assert mul(a, b, out=on_device) is on_device
    np.testing.assert_array_equal(on_device.numpy(), a * b)
    host[:] = 0
    assert mul(device.asarray(a), device.asarray(b), out=[host]) is host
    np.testing.assert_array_equal(host, a * b)


def test_read_and_written_binding(device: pumice.Device) -> None:
    saxpy = device.load_kernel(shaders.source_path("examples/saxpy"))
    for count in (7, 100_000):
        x, y = arrays(count)
        before = y.copy()
        result = saxpy(x, y, a=2.5)
        np.testing.assert_allclose(result, 2.5 * x + before, rtol=1e-6)
        np.testing.assert_array_equal(y, before, "the argument itself is not changed")


def test_python_scalars_lists_and_non_contiguous_arrays(mul: pumice.Kernel) -> None:
    wide = np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(mul([1, 2, 3], wide[::7], pumice.empty(3)), [1 * 0, 2 * 7, 3 * 14])
    assert mul(3, 4, pumice.empty(())) == 12


def test_views_at_any_offset(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b = arrays(100)
    x, y, z = device.asarray(a), device.asarray(b), device.zeros(100)
    for start in (0, 1, 2, 3, 4, 17):
        mul(x[start : start + 9], y[start : start + 9], z[start : start + 9])
        expected = z.numpy()
        np.testing.assert_array_equal(expected[start : start + 9], (a * b)[start : start + 9])
    assert not z.numpy()[26:].any(), "nothing is written behind the views"


@pytest.mark.sample(20)
@pytest.mark.parametrize(
    ("glsl", "dtype"),
    [
        ("float", np.float32),
        ("int", np.int32),
        ("uint", np.uint32),
        ("float64_t", np.float64),
        ("int64_t", np.int64),
        ("uint64_t", np.uint64),
        ("int16_t", np.int16),
        ("uint16_t", np.uint16),
        ("int8_t", np.int8),
        ("uint8_t", np.uint8),
    ],
)
@pytest.mark.parametrize("count", [1, 33, 1001])
def test_element_types(device: pumice.Device, glsl: str, dtype: type[np.generic], count: int) -> None:
    require_features(device.vulkan, *type_features(dtype))
    kernel = device.load_kernel(BINARY.format(type=glsl))
    values = np.random.default_rng(1).integers(0, 50, count).astype(dtype)
    np.testing.assert_array_equal(kernel(values, pumice.empty(count, dtype)), values + values)


@pytest.mark.features("shaderInt16", "storageBuffer16BitAccess")
def test_types_that_shaders_keep_as_bits(device: pumice.Device) -> None:
    kernel = device.load_kernel(BINARY.format(type="uint16_t"))
    values = np.array([1.0, -2.0, 0.5], ml_dtypes.bfloat16)
    result = kernel(values, pumice.empty(3, np.uint16))
    np.testing.assert_array_equal(result, values.view(np.uint16) * np.uint16(2))


def test_nan_and_infinity_pass_through(mul: pumice.Kernel) -> None:
    a = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38], np.float32)
    b = np.array([1, -1, 0, np.inf, 5, 1e38], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(mul(a, b, pumice.empty(6)), a * b)


# -- groups, push constants, specialization ------------------------------------------------------------


def test_groups_are_inferred_by_axis(device: pumice.Device) -> None:
    kernel = device.load_kernel(IMAGE_LIKE)
    for shape in [(1, 1, 1), (3, 5, 7), (2, 2, 4), (5, 3), (9,)]:
        z, y, x = (1,) * (3 - len(shape)) + shape
        result = kernel(pumice.empty(shape, np.uint32), extent=[x, y, z])
        at_z, at_y, at_x = np.indices((z, y, x))
        np.testing.assert_array_equal(result, (at_x + 100 * at_y + 10000 * at_z + 1).reshape(shape))


def test_explicit_groups_bound_the_work(device: pumice.Device) -> None:
    kernel = device.load_kernel(ACCUMULATE)
    push = {"first": 1, "rest": [0, 0, 0], "scale": [0, 0], "turn": [[0, 0], [0, 0]]}
    total = kernel(np.zeros(20, np.int32), groups=1, push=push)
    np.testing.assert_array_equal(total, [1] * 8 + [0] * 12)
    np.testing.assert_array_equal(kernel(np.zeros(20, np.int32), groups=(2, 1), push=push), [1] * 16 + [0] * 4)
    np.testing.assert_array_equal(kernel(np.zeros(20, np.int32), groups=0, push=push), [0] * 20)


def test_push_constants_by_name_order_and_bytes(device: pumice.Device) -> None:
    kernel = device.load_kernel(ACCUMULATE)
    matrix = np.array([[0, 7], [8, 0]])  # [row, column]; turn[1][0] is column 1, row 0
    by_name = kernel(np.zeros(3, np.int32), first=1, rest=(2, 3, 4), scale=[5, 6], turn=matrix)
    np.testing.assert_array_equal(by_name, [87654321] * 3)
    in_order = kernel(np.zeros(3, np.int32), push=[1, (2, 3, 4), [5, 6], matrix])
    np.testing.assert_array_equal(in_order, by_name)
    mapping = kernel(np.zeros(3, np.int32), push={"first": 1, "rest": (2, 3, 4)}, scale=[5, 6], turn=matrix)
    np.testing.assert_array_equal(mapping, by_name)
    block = kernel.pipeline.entry.push_constants
    assert block is not None
    nothing = kernel(np.zeros(3, np.int32), push=bytes(block.size))
    np.testing.assert_array_equal(nothing, [0, 0, 0])


def test_specialization_by_id_and_name(device: pumice.Device) -> None:
    push = {"first": 3, "rest": [0, 0, 0], "scale": [0, 0], "turn": [[0, 0], [0, 0]]}
    for specialization in ({3: 7}, {"step_size": 7}):
        kernel = device.load_kernel(ACCUMULATE, specialization=specialization)  # type: ignore[arg-type]
        np.testing.assert_array_equal(kernel(np.zeros(2, np.int32), push=push), [21, 21])


def test_local_size_by_specialization(device: pumice.Device) -> None:
    source = shaders.source_path("examples/reduction")
    values = np.arange(1000, dtype=np.float32)
    for size in (32, 64, 128):
        kernel = device.load_kernel(source, specialization={0: size})
        assert kernel.pipeline.local_size == (size, 1, 1)
        total = kernel(values, pumice.empty(1), groups=1, count=1000)
        np.testing.assert_allclose(total, [values.sum()])


def test_an_array_of_vec3_without_padding_is_three_columns(device: pumice.Device) -> None:
    if "scalarBlockLayout" not in device.hal.plan.features:  # type: ignore[attr-defined]
        pytest.skip("the device has no scalar block layout")
    kernel = device.load_kernel("""
        #version 460
        #extension GL_EXT_scalar_block_layout : require
        layout(local_size_x = 32) in;
        layout(scalar, binding = 0) readonly buffer X { vec3 x[]; };
        layout(scalar, binding = 1) buffer Y { vec3 y[]; };
        void main() {
            uint i = gl_GlobalInvocationID.x;
            if (i < x.length()) y[i] = x[i].zxy;
        }
    """)
    x = np.arange(30, dtype=np.float32).reshape(10, 3)
    np.testing.assert_array_equal(kernel(x, pumice.empty((10, 3), np.float32)), x[:, [2, 0, 1]])


def test_extensions_that_mean_nothing_are_left_out_for_the_driver(device: pumice.Device) -> None:
    """What HLSL compilers write about their sources, on devices with and without the extensions."""
    code = assemble(
        """
        OpCapability Shader
        OpExtension "SPV_GOOGLE_hlsl_functionality1"
        OpExtension "SPV_GOOGLE_user_type"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main" %x
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorateString %x UserTypeGOOGLE "rwstructuredbuffer:<int>"
        OpDecorate %x DescriptorSet 0
        OpDecorate %x Binding 0
        OpDecorate %array ArrayStride 4
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        %void = OpTypeVoid
        %function = OpTypeFunction %void
        %int = OpTypeInt 32 1
        %zero = OpConstant %int 0
        %seven = OpConstant %int 7
        %array = OpTypeRuntimeArray %int
        %block = OpTypeStruct %array
        %pointer = OpTypePointer StorageBuffer %block
        %element = OpTypePointer StorageBuffer %int
        %x = OpVariable %pointer StorageBuffer
        %main = OpFunction %void None %function
        %label = OpLabel
        %at = OpAccessChain %element %x %zero %zero
        OpStore %at %seven
        OpReturn
        OpFunctionEnd
        """
    )
    np.testing.assert_array_equal(device.load_kernel(code)(np.zeros(1, np.int32)), [7])


def test_defines_and_includes(device: pumice.Device, tmp_path: Path) -> None:
    (tmp_path / "scale.glsl").write_text("#define SCALE(x) ((x) * FACTOR)\n")
    source = tmp_path / "scaled.comp"
    source.write_text(
        '#version 450\n#extension GL_GOOGLE_include_directive : require\n#include "scale.glsl"\n'
        "layout(local_size_x = 4) in;\nlayout(std430, binding = 0) buffer B { float v[]; };\n"
        "void main() { uint i = gl_GlobalInvocationID.x; if (i < v.length()) v[i] = SCALE(v[i]); }\n"
    )
    values = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(device.load_kernel(source, defines={"FACTOR": "3.0"})(values), values * 3)
