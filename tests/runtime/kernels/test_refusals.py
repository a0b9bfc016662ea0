"""Wrong arguments and sources of kernels, and the end of kernels and arrays."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from support.devices.kernel_sources import ACCUMULATE

import pumice
from pumice import shaders

pytestmark = pytest.mark.vulkan


def arrays(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal(count, np.float32), generator.standard_normal(count, np.float32)


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


@pytest.mark.parametrize("number", [65536, 2**32 - 2, 2**32 - 1])
def test_binding_numbers_that_drivers_need_not_take_are_refused(device: pumice.Device, number: int) -> None:
    words = np.fromfile(shaders.path("mul"), np.uint32)
    decorations = np.flatnonzero(words[:-3] == (4 << 16 | 71))  # OpDecorate of four words
    last = next(at for at in decorations if words[at + 2] == 33 and words[at + 3] == 2)  # Binding 2
    words[last + 3] = number
    with pytest.raises(pumice.InvalidArgumentError, match=f"binding number {number} is past 65535"):
        device.load_kernel(words.tobytes())


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
    assert len(saxpy._dispatcher.recorder.recordings) == 1


def test_shared_memory_sized_by_a_specialization_constant(device: pumice.Device) -> None:
    source = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 3) const uint N = 4;
shared float s[N];
layout(binding = 0) buffer B { float v[]; };
void main() {
    if (gl_LocalInvocationIndex == 0) { s[0] = 1; s[N - 1] = 2; }
    barrier();
    if (gl_LocalInvocationIndex == 1) v[0] = s[N - 1];
}
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
