"""Kernels as users call them: arguments of every kind, on mapped memory and on the staging path, and wrong input."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.shader_tools import assemble

import pumice
from pumice import shaders
from pumice.waits.wait_mode import waits

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

ACCUMULATE = """#version 450
layout(local_size_x = 8) in;
layout(constant_id = 3) const int step_size = 1;
layout(std430, binding = 0) buffer Total { int total[]; };
layout(push_constant) uniform Push { int first; ivec3 rest; float scale[2]; mat2 turn; } push;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < total.length()) {
        total[i] += push.first * step_size + push.rest.x * 10 + push.rest.y * 100 + push.rest.z * 1000
            + int(push.scale[0]) * 10000 + int(push.scale[1]) * 100000
            + int(push.turn[1][0]) * 1000000 + int(push.turn[0][1]) * 10000000;
    }
}
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


@pytest.fixture(params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging") as opened:
        yield opened


@pytest.fixture
def mul(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(shaders.source_path("mul"))


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
    kernel = device.load_kernel(BINARY.format(type=glsl))
    values = np.random.default_rng(1).integers(0, 50, count).astype(dtype)
    np.testing.assert_array_equal(kernel(values, pumice.empty(count, dtype)), values + values)


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


# -- results of repeated and concurrent calls ----------------------------------------------------------


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_calls_run_in_the_order_given(device: pumice.Device, order: list[tuple[int, int, int]]) -> None:
    kernel = device.load_kernel(shaders.source_path("mul"))
    model = [np.full(5, 1 + i / 8, np.float32) for i in range(6)]
    held = [device.asarray(m) for m in model]
    for a, b, c in order:
        if c in (a, b):
            continue  # the same memory as input and output of one call is a race of the caller's
        kernel(held[a], held[b], held[c])
        with np.errstate(over="ignore"):
            model[c] = model[a] * model[b]
    for array, expected in zip(held, model, strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)
    kernel.close()


def test_a_repeated_call_makes_nothing(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b = arrays(10)
    x, y, z = device.asarray(a), device.asarray(b), device.empty(10)
    for _ in range(20):
        mul(x, y, z).wait()  # type: ignore[union-attr]
    mul(a, b, pumice.empty(10))
    before = pumice.live_objects()
    for _ in range(200):
        mul(x, y, z).wait()  # type: ignore[union-attr]
        mul(a, b, pumice.empty(10))
    device.hal.wait_idle()
    device.hal.retire()
    assert pumice.live_objects().get("allocation") == before.get("allocation")
    assert pumice.live_objects().get("descriptor pool") == before.get("descriptor pool")


def test_a_repeated_call_with_numpy_arrays_keeps_its_staging(device: pumice.Device, mul: pumice.Kernel) -> None:
    """What is made and closed has the next submission check all its resources again."""
    a, b = arrays(10)
    x, out = device.asarray(a), np.empty(10, np.float32)

    def call() -> None:
        np.testing.assert_array_equal(mul(a, b, pumice.empty(10)), a * b)
        np.testing.assert_array_equal(mul(a, b, out=out), a * b)
        mul(x, b, x).wait().copy_from(a)  # type: ignore[union-attr]

    def settled() -> dict[str, int]:
        device.hal.wait_idle()
        device.hal.retire()
        return pumice.live_objects()

    call()
    live, closed = settled(), device.hal.close_epoch
    for _ in range(20):
        call()
    assert settled() == live
    # copy_from goes through a buffer of its own where the host does not see the array.
    assert device.hal.close_epoch - closed == (20 if device.staging else 0)


def test_a_call_with_numpy_arrays_takes_few_python_calls(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b = arrays(10)
    out = pumice.empty(10)
    for _ in range(3):
        mul(a, b, out)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    with waits("block"):  # looks make as many calls as they take
        sys.setprofile(count)
        try:
            mul(a, b, out)
        finally:
            sys.setprofile(None)
    assert calls <= (90 if device.staging else 50)


def test_staging_is_bounded_and_goes_with_the_kernel(device: pumice.Device) -> None:
    kernel = device.load_kernel(shaders.source_path("mul"))
    device.hal.trim()
    before = pumice.live_objects().get("allocation", 0)

    def kept() -> int:
        device.hal.wait_idle()
        device.hal.retire()
        return pumice.live_objects().get("allocation", 0) - before

    for count in range(1, 60):
        a, b = arrays(count)
        np.testing.assert_array_equal(kernel(a, b, pumice.empty(count)), a * b)
    assert 0 < kept() <= 16 * (6 if device.staging else 3)
    for count in (3 << 20, 1 << 20):
        a, b = arrays(count)
        np.testing.assert_array_equal(kernel(a, b, pumice.empty(count)), a * b)
    assert kernel._dispatcher._staging._nbytes <= 16 << 20
    device.hal.trim()
    assert kept() == 0
    a, b = arrays(5)
    kernel(a, b, pumice.empty(5))
    kernel.close()
    assert kept() == 0


def test_threads_have_staging_each(device: pumice.Device, mul: pumice.Kernel) -> None:
    failures: list[str] = []
    start = threading.Barrier(6)
    zero = device.zeros(8)

    def work(seed: int) -> None:
        start.wait()
        for step in range(60):
            a, b = arrays(8 + step % 2, seed * 1000 + step)
            result = mul(a, b, pumice.empty(len(a)))
            mixed = mul(a[:8], b[:8], out=device.empty(8)) if step % 3 else mul(zero, b[:8], pumice.empty(8))
            if not np.array_equal(result, a * b) or not np.array_equal(mixed, (a * b)[:8] if step % 3 else 0 * b[:8]):
                failures.append(f"thread {seed} step {step}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_staging_of_calls_that_nobody_waits_for_is_not_overwritten(device: pumice.Device, mul: pumice.Kernel) -> None:
    ones = device.asarray(np.ones(4096, np.float32))
    results = [mul(ones, np.full(4096, i, np.float32), pumice.empty(4096)) for i in range(100)]
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(4096, i))


def test_an_interrupted_call_leaves_its_staging_to_nobody(
    device: pumice.Device, mul: pumice.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = arrays(7)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for owner, method in ((device.hal.compute_queue, "submit"), (device, "reach")):
        mul(a, b, pumice.empty(7))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(owner, method, interrupted)
            mul(b, b, pumice.empty(7))
        np.testing.assert_array_equal(mul(a, b, pumice.empty(7)), a * b)


def test_more_buffers_than_recordings(device: pumice.Device, mul: pumice.Kernel) -> None:
    held = [device.asarray(np.full(3, i, np.float32)) for i in range(150)]
    z = device.empty(3)
    for i in range(600):
        mul(held[i % 150], held[i * 7 % 150], z)
        if i % 97 == 0:
            np.testing.assert_array_equal(z.numpy(), [(i % 150) * (i * 7 % 150)] * 3)


def test_threads_share_a_kernel(device: pumice.Device, mul: pumice.Kernel) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        for step in range(40):
            a, b = arrays(50 + seed, seed * 100 + step)
            if not np.array_equal(mul(a, b, pumice.empty(a.shape)), a * b):
                failures.append(f"thread {seed} step {step}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_time(mul: pumice.Kernel) -> None:
    a, b = arrays(1000)
    result, timing = mul.time(a, b, pumice.empty(1000))
    np.testing.assert_array_equal(result, a * b)
    assert timing.duration_ns > 0
    assert timing.name == "mul"
    assert timing.device_type in ("CPU", "DISCRETE", "INTEGRATED", "VIRTUAL", "OTHER")


# -- wrong input ---------------------------------------------------------------------------------------


def test_wrong_dtype_names_the_binding(mul: pumice.Kernel) -> None:
    a, b = arrays(4)
    with pytest.raises(pumice.InvalidArgumentError, match=r"binding 1 \(B\) got dtype float64.*float32"):
        mul(a, b.astype(np.float64), pumice.empty(4))
    picture = np.zeros((1, 4, 4), np.uint8)  # whose bytes would be misread as floats
    with pytest.raises(pumice.InvalidArgumentError, match=r"dtype uint8 and shape \(1, 4, 4\).*astype\(np.float32\)"):
        mul(a, picture, pumice.empty(4))
    np.testing.assert_array_equal(mul(a, picture.reshape(-1), pumice.empty(4)), np.zeros(4))


def test_missing_binding_is_named(mul: pumice.Kernel) -> None:
    a, b = arrays(4)
    with pytest.raises(pumice.InvalidArgumentError, match=r"binding 2 \(Product\).*missing"):
        mul(a, b)
    with pytest.raises(pumice.InvalidArgumentError, match="takes 3 array"):
        mul(a, b, a, b)


def test_a_read_binding_takes_no_placeholder(mul: pumice.Kernel) -> None:
    a, _ = arrays(4)
    with pytest.raises(pumice.InvalidArgumentError, match=r"binding 1 \(B\).*only reads"):
        mul(a, pumice.empty(4), a)


def test_objects_and_strings_are_refused(mul: pumice.Kernel) -> None:
    a, _ = arrays(4)
    for bad in (None, "four", np.array([object()]), [1, "x"], {"a": 1}):
        with pytest.raises(pumice.PumiceError, match=r"binding 1|dtype"):
            mul(a, bad, pumice.empty(4))  # type: ignore[arg-type]


def test_empty_arrays(device: pumice.Device, mul: pumice.Kernel) -> None:
    nothing = np.empty(0, np.float32)
    result = mul(nothing, nothing, pumice.empty(0))
    assert isinstance(result, np.ndarray)
    assert result.shape == (0,)
    with pytest.raises(pumice.InvalidArgumentError, match=r"binding 0 \(A\) got an empty array"):
        mul(nothing, np.ones(3, np.float32), pumice.empty(3))
    with pytest.raises(pumice.InvalidArgumentError, match="empty"):
        mul(nothing, nothing, pumice.empty(0), groups=1)
    assert device.asarray(nothing).numpy().shape == (0,)


@pytest.mark.parametrize("groups", [-1, (1, 2, 3, 4), (1, -2), "3", 1.5, ()])
def test_bad_groups(mul: pumice.Kernel, groups: object) -> None:
    a, b = arrays(4)
    with pytest.raises(pumice.InvalidArgumentError, match="groups"):
        mul(a, b, pumice.empty(4), groups=groups)  # type: ignore[arg-type]


def test_too_many_groups(mul: pumice.Kernel) -> None:
    a, b = arrays(4)
    with pytest.raises(pumice.ResourceExhaustedError, match="workgroups are more than"):
        mul(a, b, pumice.empty(4), groups=2**31)


def test_bad_push_constants(device: pumice.Device, mul: pumice.Kernel) -> None:
    kernel = device.load_kernel(ACCUMULATE)
    good = {"first": 1, "rest": [0, 0, 0], "scale": [0, 0], "turn": [[0, 0], [0, 0]]}
    total = np.zeros(3, np.int32)
    for change, message in [
        ({"first": "one"}, "first"),
        ({"first": 2**31}, "first.*-2147483648 to 2147483647"),
        ({"first": 1.5}, "first"),
        ({"rest": [1, 2]}, "rest.*shape"),
        ({"scale": 1.0}, "scale"),
        ({"scale": [10**400, 1]}, "scale"),
        ({"scale": [10**400, 1.0]}, "scale"),
        ({"first": 10**400}, "first"),
        ({"first": 10**5000}, "first"),
        ({"other": 1}, "no push constant 'other'; it has: first, rest, scale, turn"),
    ]:
        with pytest.raises(pumice.PumiceError, match=message):
            kernel(total, push={**good, **change})
    with pytest.raises(pumice.InvalidArgumentError, match=r"int first.*not given"):
        kernel(total, rest=[0, 0, 0], scale=[0, 0], turn=[[0, 0], [0, 0]])
    with pytest.raises(pumice.InvalidArgumentError, match="bytes of push constants"):
        kernel(total, push=b"abc")
    with pytest.raises(pumice.InvalidArgumentError, match="4 push constant"):
        kernel(total, push=[1, 2])
    with pytest.raises(pumice.NotFoundError, match="no push constant .alpha.; it has: none; .*: A, B, Product"):
        mul(total, total, total, alpha=1)


def test_specialization_errors(device: pumice.Device) -> None:
    with pytest.raises(pumice.NotFoundError, match=r"no specialization constant 9; it has: 3 \(step_size\)"):
        device.load_kernel(ACCUMULATE, specialization={9: 1})
    with pytest.raises(pumice.NotFoundError, match="'speed'"):
        device.load_kernel(ACCUMULATE, specialization={"speed": 1})
    with pytest.raises(pumice.InvalidArgumentError, match="32-bit int"):
        device.load_kernel(ACCUMULATE, specialization={3: 1.5})
    with pytest.raises(pumice.InvalidArgumentError, match="workgroup size"):
        device.load_kernel(shaders.source_path("examples/reduction"), specialization={0: 1 << 20})


def test_unknown_entry_point_lists_those_that_exist(device: pumice.Device) -> None:
    with pytest.raises(pumice.NotFoundError, match="'main'"):
        device.load_kernel(shaders.path("mul"), entry_point="mian")


def test_missing_unreadable_and_foreign_files(device: pumice.Device, tmp_path: Path) -> None:
    for name in ("absent.spv", "absent.comp", "absent"):
        with pytest.raises(pumice.NotFoundError, match="no such file"):
            device.load_kernel(tmp_path / name)
    with pytest.raises(pumice.PumiceError, match="cannot be read"):
        device.load_kernel(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(pumice.InvalidArgumentError, match="expected SPIR-V"):
        device.load_kernel(tmp_path / "notes.txt")
    (tmp_path / "broken.comp").write_text("#version 450\nvoid main() { undeclared = 1; }\n")
    with pytest.raises(pumice.InvalidArgumentError, match="undeclared"):
        device.load_kernel(tmp_path / "broken.comp")


def test_damaged_spirv_is_refused(device: pumice.Device) -> None:
    code = shaders.spirv("mul")
    swapped = np.frombuffer(code, "<u4").astype(">u4").tobytes()
    with pytest.raises(pumice.InvalidArgumentError, match="endian"):
        device.load_kernel(swapped)
    for damaged in (b"", code[:3], code[:20], code[: len(code) // 2], code[:-4], code + b"\0\0\0\0", bytes(100)):
        with pytest.raises(pumice.PumiceError):
            device.load_kernel(damaged)


def test_random_and_flipped_spirv_never_crashes(device: pumice.Device) -> None:
    generator = np.random.default_rng(7)
    code = np.frombuffer(shaders.spirv("mul"), np.uint8)
    a, b = arrays(64)
    survived = 0
    for _ in range(40):
        mutant = code.copy()
        for place in generator.integers(20, len(code), 2):
            mutant[place] ^= 1 << int(generator.integers(0, 8))
        try:
            kernel = device.load_kernel(mutant.tobytes())
        except pumice.PumiceError:
            continue
        survived += 1
        kernel.close()
    for _ in range(20):
        with pytest.raises(pumice.PumiceError):
            device.load_kernel(generator.integers(0, 256, 400, np.uint8).tobytes())
    assert survived < 40, "some damage must be seen"
    np.testing.assert_array_equal(
        device.load_kernel(shaders.spirv("mul"))(a, b, pumice.empty(64)), a * b, "the device still works"
    )


def test_a_closed_kernel_and_closed_arrays_say_so(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b = arrays(4)
    x, y, z = device.asarray(a), device.asarray(b), device.empty(4)
    mul(x, y, z)
    y.close()
    with pytest.raises(pumice.ClosedError, match="closed"):
        mul(x, y, z)
    with pytest.raises(pumice.ClosedError):
        y.numpy()
    mul.close()
    with pytest.raises(pumice.ClosedError, match="mul was closed"):
        mul(a, b, pumice.empty(4))


def test_arrays_of_another_device_are_refused(device: pumice.Device, mul: pumice.Kernel) -> None:
    with pumice.open_device(device.uri) as other:
        foreign = other.asarray(np.ones(4, np.float32))
        here = device.asarray(np.ones(4, np.float32))
        for arguments in ((foreign, here, device.empty(4)), (foreign, np.ones(4, np.float32), pumice.empty(4))):
            with pytest.raises(pumice.InvalidArgumentError, match=r"device\.asarray"):
                mul(*arguments)
        np.testing.assert_array_equal(mul(device.asarray(foreign), here, device.empty(4)).numpy(), np.ones(4))  # type: ignore[union-attr]
        foreign.close()


def test_robust_access_keeps_a_kernel_within_its_arrays() -> None:
    source = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { uint values[]; };
layout(std430, binding = 1) buffer Out { uint got[]; };
void main() { uint i = gl_GlobalInvocationID.x; got[i] = values[i * 100000u] + 1u; }
"""
    with pumice.open_device(robust=True) as device:
        kernel = device.load_kernel(source)
        guard = device.asarray(np.full(64, 7, np.uint32))
        out = device.zeros(8, np.uint32)
        kernel(device.asarray(np.arange(8, dtype=np.uint32)), out, groups=64)
        assert out.numpy()[0] == 1
        np.testing.assert_array_equal(guard.numpy(), np.full(64, 7), "memory beside the arrays is untouched")


# -- found by reviews ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8, 1 << 17])
def test_out_must_be_writable_and_contiguous(mul: pumice.Kernel, count: int) -> None:
    a, b = arrays(count)
    read_only = np.zeros(count, np.float32)
    read_only.flags.writeable = False
    backing = bytes(4 * count)
    for bad in (read_only, np.zeros(2 * count, np.float32)[::2], np.frombuffer(backing, np.float32), [0.0] * count, 5):
        with pytest.raises(pumice.InvalidArgumentError, match="out="):
            mul(a, b, out=bad)  # type: ignore[arg-type]
    assert not read_only.any()
    assert backing == bytes(4 * count)


def test_push_constants_keep_the_sign_of_zero_and_the_type(device: pumice.Device) -> None:
    saxpy = device.load_kernel(shaders.source_path("examples/saxpy"))
    one, zero = np.ones(1, np.float32), -np.zeros(1, np.float32)
    for a in (0.0, -0.0, 0.0, 0, True, 1, 1.0, np.float32(-0.0)):
        result = saxpy(one, zero, a=a)
        assert isinstance(result, np.ndarray)
        expected = np.float32(a) * one + zero
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
        np.testing.assert_array_equal(result, expected)


def test_push_constants_of_any_size_are_refused_or_fit(device: pumice.Device) -> None:
    saxpy = device.load_kernel(shaders.source_path("examples/saxpy"))
    one = np.ones(1, np.float32)
    for huge in (10**400, -(10**400), 10**5000):
        with pytest.raises(pumice.InvalidArgumentError, match="push constant a takes float") as caught:
            saxpy(one, one, a=huge)
        assert len(str(caught.value)) < 300


def test_equal_bits_are_one_push_constant(device: pumice.Device) -> None:
    saxpy = device.load_kernel(shaders.source_path("examples/saxpy"))
    one, zero = device.asarray(np.ones(1, np.float32)), device.zeros(1)
    for _ in range(100):
        result = saxpy(one, zero, a=float("nan"))
    assert np.isnan(result.numpy()).all()
    assert len(saxpy._binder._push._kept) == len(saxpy._dispatcher.recorder.recordings) == 1


def test_shared_memory_sized_by_a_specialization_constant(device: pumice.Device) -> None:
    source = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 3) const uint N = 4;
shared float s[N];
layout(binding = 0) buffer B { float v[]; };
void main() { s[gl_LocalInvocationIndex] = 1; s[N - 1] = 2; barrier(); v[0] = s[N - 1]; }
"""
    np.testing.assert_array_equal(device.load_kernel(source, specialization={"N": 64})(np.zeros(1, np.float32)), [2])
    for bad, message in [(0, "length 0"), (1 << 26, "shared memory"), (0xFFFFFFFF, "shared memory")]:
        with pytest.raises(pumice.InvalidArgumentError, match=message):
            device.load_kernel(source, specialization={"N": bad})


def test_groups_of_other_integer_types(mul: pumice.Kernel) -> None:
    a, b = arrays(64)
    for groups in ([1], (np.int64(1),), np.int32(1), [1, 1, 1]):
        np.testing.assert_array_equal(mul(a, b, pumice.empty(64), groups=groups), a * b)  # type: ignore[arg-type]
    with pytest.raises(pumice.InvalidArgumentError, match="groups"):
        mul(a, b, pumice.empty(64), groups=True)


def test_padded_elements_are_not_misread(device: pumice.Device) -> None:
    source = """#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B { vec3 v[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < v.length()) v[i] = v[i] + vec3(1, 2, 3); }
"""
    kernel = device.load_kernel(source)
    with pytest.raises(pumice.InvalidArgumentError, match="Pad the last axis to 4"):
        kernel(np.zeros((4, 3), np.float32))
    result = kernel(np.zeros((5, 4), np.float32))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result[:, :3], np.tile([1, 2, 3], (5, 1)))


def test_dropped_kernels_are_unloaded(device: pumice.Device) -> None:
    a, b = arrays(4)
    for _ in range(3):
        device.load_kernel(shaders.path("mul"))(a, b, pumice.empty(4))
    device.hal.wait_idle()
    before = pumice.live_objects()
    for _ in range(20):
        device.load_kernel(shaders.path("mul"))(a, b, pumice.empty(4))
    gc.collect()
    device.hal.wait_idle()
    device.hal.trim()  # pools are kept for as much as was in flight at once
    assert pumice.live_objects().get("pipeline", 0) <= before.get("pipeline", 0) + 1
    assert pumice.live_objects().get("command pool", 0) <= before.get("command pool", 0) + 2


def test_a_kernel_is_closed_while_others_call_it(device: pumice.Device) -> None:
    a, b = arrays(4)
    for _ in range(5):
        kernel = device.load_kernel(shaders.path("mul"))
        unexpected: list[BaseException] = []

        def call(kernel: pumice.Kernel = kernel, unexpected: list[BaseException] = unexpected) -> None:
            try:
                for groups in range(1, 200):
                    kernel(a, b, pumice.empty(4), groups=groups)
            except pumice.ClosedError:
                pass
            except BaseException as error:
                unexpected.append(error)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        kernel.close()
        for thread in threads:
            thread.join()
        assert not unexpected


def test_sources_of_the_wrong_type(device: pumice.Device) -> None:
    for bad in (None, 5, "", "a\0b", "x" * 5000 + ".comp"):
        with pytest.raises(pumice.PumiceError):
            device.load_kernel(bad)  # type: ignore[arg-type]
    mul_glsl = shaders.source_path("mul").read_bytes()
    np.testing.assert_array_equal(device.load_kernel(mul_glsl)([2.0], [3.0], pumice.empty(1)), [6])
    for keywords in ({"defines": {"A": 1}}, {"include_dirs": ["parts"]}):  # which only a compiler could follow
        for module in (shaders.path("mul"), shaders.spirv("mul")):
            with pytest.raises(pumice.InvalidArgumentError, match="for sources; .* is SPIR-V"):
                device.load_kernel(module, **keywords)  # type: ignore[arg-type]
    for keywords in ({"specialization": 5}, {"defines": ["A"]}, {"defines": {"A": None}}, {"subgroup_size": "x"}):
        with pytest.raises(pumice.InvalidArgumentError):
            device.load_kernel(mul_glsl, **keywords)  # type: ignore[arg-type]
