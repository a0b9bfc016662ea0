"""Cases that run kernels of ``shaders/check`` and ``shaders/examples``, and compare the results with NumPy."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ... import shaders
from ...base.lazy_dataclass import dataclass
from ...runtime.device import Device
from ...testing.closeness import assert_close
from .case import Case, SkipCase, needs

Array: TypeAlias = npt.NDArray[Any]
Groups: TypeAlias = int | tuple[int, int] | tuple[int, int, int]

_N: Final = 1000  # no multiple of a workgroup
WHOLE: Final = 1024  # of subgroups and workgroups
# Vulkan allows errors of some units in the last place in exp2, log2 and inversesqrt of 32-bit floats.
_FLOAT_FUNCTIONS: Final = 3e-6
_DETERMINANTS: Final = 1e-4  # differences of products of some hundreds


@dataclass(frozen=True, slots=True)
class KernelCase:
    """A kernel, its arrays, and its expected results.

    Attributes:
        shader: its name in ``shaders``.
        inputs: a function that makes the arrays to read.
        outputs: shapes and dtypes, or initial contents, of the arrays that it writes.
        expected: a function from the inputs to the expected outputs.
        groups: the workgroup counts.
        features, operations: the required features of the device, and groups of subgroup operations.
        specialization: values of specialization constants.
        push: push constants.
        rtol, atol: tolerances; None for the dtype's.
    """

    shader: str
    inputs: Callable[[np.random.Generator], Sequence[Array]]
    outputs: Sequence[Array]
    expected: Callable[..., Sequence[Array | None]]
    groups: Groups
    features: tuple[str, ...] = ()
    operations: str = ""
    specialization: dict[int | str, int] | None = None
    push: dict[str, Any] | None = None
    rtol: float | None = None
    atol: float | None = None

    def __call__(self, device: Device) -> None:
        needs(device, *self.features)
        _needs_subgroups(device, self.operations)
        inputs = self.inputs(np.random.default_rng(zlib.crc32(self.shader.encode())))
        arrays = [device.asarray(value) for value in inputs]
        results = [device.asarray(value) for value in self.outputs]
        kernel = device.load_kernel(shaders.path(self.shader), specialization=self.specialization)
        try:
            kernel(*arrays, *results, groups=self.groups, push=self.push)
            values = [result.numpy() for result in results]
        finally:
            kernel.close()
            for array in (*arrays, *results):
                array.close()
        with np.errstate(all="ignore"):
            expected = self.expected(*inputs, *(values if self.operations else ()))
        for number, (value, wanted) in enumerate(zip(values, expected, strict=True)):
            if wanted is not None:
                assert_close(value, wanted, rtol=self.rtol, atol=self.atol, what=f"output {number} against NumPy")


def _needs_subgroups(device: Device, operations: str) -> None:
    subgroup = device.profile.subgroup
    if operations and not (subgroup.compute_stage and operations in subgroup.supported_operations):
        raise SkipCase(f"the device has no subgroup operations of {operations}")


def words(count: int, low: int = 0, high: int = 1 << 32) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(low, high, count, dtype=np.uint64).astype(np.uint32)


def of(*makers: Callable[[np.random.Generator], Array]) -> Callable[[np.random.Generator], Sequence[Array]]:
    return lambda rng: [make(rng) for make in makers]


def floats(shape: Any, dtype: str = "f4", low: float = 0.1, high: float = 8) -> Callable[..., Array]:
    return lambda rng: rng.uniform(low, high, shape).astype(dtype)


def zeros(shape: Any, dtype: str = "u4") -> Array:
    return np.zeros(shape, dtype)


# -- what kernels compute ----------------------------------------------------------------------------


def _ids() -> list[Array]:
    groups, local = (3, 5, 2), (4, 2, 3)
    x, y, z = (count * size for count, size in zip(groups, local, strict=True))
    at = np.stack(np.meshgrid(np.arange(z), np.arange(y), np.arange(x), indexing="ij")[::-1], -1).reshape(-1, 3)
    inside = at % local
    index = (inside[:, 2] * local[1] + inside[:, 1]) * local[0] + inside[:, 0]
    marks = np.full((len(at), 1), 0xC0FFEE)
    return [np.concatenate([at, index[:, None], at // local, marks], 1).astype(np.uint32)]


def _bit_places(values: Array, places: Callable[[int], int]) -> Array:
    return np.array([places(int(value)) for value in values]).astype(np.uint32)


def _integers(a: Array, b: Array) -> list[Array]:
    x, y, signed = a.astype(np.uint64), b.astype(np.uint64), a.view(np.int32).astype(np.int64)
    field = (x >> (y % 24)) & 127
    results = [
        a + b,
        (x + y) >> 32,
        a - b,
        a < b,
        (x * y) >> 32,
        a * b,
        (signed * b.view(np.int32)) >> 32,
        _bit_places(a, lambda value: int(f"{value:032b}"[::-1], 2)),
        _bit_places(a, int.bit_count),
        _bit_places(a, lambda value: (value.bit_length() - 1) & 0xFFFFFFFF),
        _bit_places(a, lambda value: ((value & -value).bit_length() - 1) & 0xFFFFFFFF),
        field,
        np.where(field >= 64, field.astype(np.int64) - 128, field.astype(np.int64)),
        (a & np.uint32(~(0x7FF << 5) & 0xFFFFFFFF)) | ((b & np.uint32(0x7FF)) << np.uint32(5)),
        signed >> (y % 32).astype(np.int64),
        np.where(b == 0, 0, a // np.maximum(b, 1) + a % np.maximum(b, 1)),
    ]
    return [np.stack([result.astype(np.int64).astype(np.uint32) for result in results])]


def _float_results(a: Array) -> list[Array]:
    x = a.astype(np.float64)
    results = [
        np.sqrt(x),
        1 / np.sqrt(x),
        np.exp2(x),
        np.log2(x),
        np.floor(x) + np.ceil(x) + x - np.floor(x),
        -a.astype(np.float16).astype(np.float64),
        np.rint(a / np.float32(8) * np.float32(255)).astype(np.float64),
        8 * x,
        x * 0.75 + 0.5,
        np.sqrt(x * x + 13),
        np.array([np.linalg.det([[v, 3, 5], [1, v, 6], [2, 4, v]]) for v in x]),
        -x,
    ]
    return [np.stack(results)]


def _workgroup(a: Array) -> list[Array]:
    parts = a.reshape(-1, 128)
    return [parts[:, ::-1].reshape(-1), np.stack([(parts & 1).sum(1), parts.max(1)], 1).astype(np.uint32)]


def _atomics(a: Array) -> list[Array | None]:
    total = np.uint32(a.sum(dtype=np.uint64) & 0xFFFFFFFF)
    bits = [np.bitwise_and.reduce(a), np.bitwise_or.reduce(a), np.bitwise_xor.reduce(a)]
    return [np.array([total, a.min(), a.max(), *bits]), None]


def _int64(a: Array, b: Array) -> list[Array]:
    quotient = np.array(
        [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    )
    unsigned = (a.view(np.uint64) // b.view(np.uint64)).view(np.int64)
    low = a.astype(np.int32).astype(np.int64)
    logical = (a.view(np.uint64) >> np.uint64(33)).view(np.int64)
    difference = np.maximum(a, b) - np.minimum(a, b)
    return [np.stack([a + b, a * b, quotient, a >> 5, logical, difference, low + (a < b), unsigned])]


def _float64(a: Array, b: Array) -> list[Array]:
    last = a.astype(np.float32).astype(np.float64) + b.astype(np.int32)
    return [np.stack([a + b, a * b, a / b, np.sqrt(a), np.floor(a) - np.ceil(b), last])]


def _float16(a: Array, b: Array) -> list[Array]:
    return [np.stack([a + b, a * b, np.maximum(a, b), (a.astype(np.float32) * 3).astype(np.float16)])]


def _bytes(a: Array, b: Array) -> list[Array]:
    return [a + b.astype(np.int8), a.astype(np.int16) * b]


def _divergence(a: Array) -> list[Array]:
    def steps(x: int) -> int:
        count = 0
        while x != 1:
            x, count = (x // 2 if x % 2 == 0 else 3 * x + 1), count + 1
        return count

    def total(x: int) -> int:
        value = 0
        for j in range(20):
            case = (x + j) % 4
            value += [3, j + 7, 7, sum(k for k in range(min(x, 5)) if k % 2 == 0)][case]
            if value > 100:
                break
        return value

    return [np.array([[steps(int(x)) for x in a], [total(int(x)) for x in a]], np.uint32)]


def _layout_blocks(rng: np.random.Generator) -> list[Array]:
    return [rng.uniform(-1, 1, 24).astype(np.float32), rng.uniform(-1, 1, 20).astype(np.float32)]


def _layouts(wide: Array, narrow: Array) -> list[Array]:
    places = [0, 4, 5, 6, 8, 12, 16, 17, 18, 20, 21, 22]  # of 4 bytes, by std140
    tight = [0, 4, 5, 6, 7, 8, 12, 13, 14, 16, 17, 18]  # by std430
    return [np.concatenate([wide[places], narrow[tight]])]


# -- the kernels that come with pumice ---------------------------------------------------------------


def _prefix_sum(device: Device) -> None:
    values = np.random.default_rng(4).integers(0, 100, 5000).astype(np.uint32)
    with (
        device.asarray(values) as source,
        device.empty(5000, np.uint32) as sums,
        device.empty(10, np.uint32) as totals,
        device.load_kernel(shaders.path("examples/prefix_sum")) as kernel,
    ):
        for step, groups in enumerate((10, 1, 10)):
            kernel(source, sums, totals, groups=groups, push={"count": 5000, "pass": step})
        assert_close(sums, np.cumsum(values), what="running sums")


def _address(device: Device) -> None:
    needs(device, "bufferDeviceAddress", "shaderInt64")
    a, b = np.random.default_rng(5).standard_normal((2, _N)).astype(np.float32)
    with (
        device.asarray(a) as x,
        device.asarray(b) as y,
        device.empty(_N) as z,
        device.load_kernel(shaders.path("timing/mul_address")) as kernel,
    ):
        kernel(a=x, b=y, c=z, count=_N, reserved=0, groups=-(-_N // 64))
        assert_close(z, a * b, what="products")


def _chain(device: Device) -> None:
    """Runs a hundred dispatches that each read the previous dispatch's results."""
    with (
        device.asarray(np.ones(_N, np.float32)) as x,
        device.asarray(np.zeros(_N, np.float32)) as y,
        device.load_kernel(shaders.path("examples/saxpy")) as kernel,
    ):
        first, second = x, y
        expected = [np.ones(_N, np.float32), np.zeros(_N, np.float32)]
        for _ in range(100):
            kernel(first, second, a=0.5, groups=16)
            expected[1] = np.float32(0.5) * expected[0] + expected[1]
            first, second, expected = second, first, expected[::-1]
        assert_close(first, expected[0], what="after a hundred dispatches")


_KERNELS: Final = {
    "numbers of invocations": KernelCase("check/ids", of(), [zeros((720, 8))], _ids, (3, 5, 2)),
    "32-bit integers": KernelCase("check/integers", of(words(_N), words(_N)), [zeros((16, _N))], _integers, 16),
    "functions of floats": KernelCase(
        "check/floats",
        of(floats(_N)),
        [zeros((12, _N), "f4")],
        _float_results,
        16,
        rtol=_FLOAT_FUNCTIONS,
        atol=_DETERMINANTS,
    ),
    "shared memory": KernelCase(
        *("check/workgroup", of(words(WHOLE)), [zeros(WHOLE), zeros((WHOLE // 128, 2))], _workgroup),
        groups=WHOLE // 128,
        specialization={0: 128, 1: 128},
    ),
    "64-bit integers": KernelCase(
        "check/int64",
        lambda rng: [
            rng.integers(-(1 << 62), 1 << 62, _N),
            rng.integers(2, 1 << 40, _N) * rng.choice([-1, 1], _N),
        ],
        [zeros((8, _N), "i8")],
        _int64,
        16,
        ("shaderInt64",),
    ),
    "64-bit floats": KernelCase(
        *("check/float64", of(floats(_N, "f8"), floats(_N, "f8")), [zeros((6, _N), "f8")], _float64, 16),
        features=("shaderFloat64",),
    ),
    "16-bit floats": KernelCase(
        *("check/float16", of(floats(_N, "f2"), floats(_N, "f2")), [zeros((4, _N), "f2")], _float16, 16),
        features=("shaderFloat16", "storageBuffer16BitAccess"),
    ),
    "bytes": KernelCase(
        "check/bytes",
        lambda rng: [rng.integers(-128, 128, _N).astype("i1"), rng.integers(-200, 200, _N).astype("i2")],
        [zeros(_N, "i1"), zeros(_N, "i2")],
        _bytes,
        16,
        ("shaderInt8", "shaderInt16", "storageBuffer8BitAccess", "storageBuffer16BitAccess"),
    ),
    "branches and loops": KernelCase("check/divergence", of(words(_N, 1, 5000)), [zeros((2, _N))], _divergence, 16),
    "layouts of blocks": KernelCase("check/layouts", _layout_blocks, [zeros(24, "f4")], _layouts, 1),
}


def _atomic_numbers(device: Device) -> None:
    values = np.random.default_rng(6).integers(0, 1 << 32, 5000, dtype=np.uint64).astype(np.uint32)
    start = np.array([0, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0, 0, 0, 0], np.uint32)
    with (
        device.asarray(values) as source,
        device.asarray(start) as results,
        device.zeros(1, np.uint32) as returned,
        device.load_kernel(shaders.path("check/atomics")) as kernel,
    ):
        kernel(source, results, returned, groups=-(-5000 // 64))
        total = np.uint32(values.sum(dtype=np.uint64) & 0xFFFFFFFF)
        bits = [np.bitwise_and.reduce(values), np.bitwise_or.reduce(values), np.bitwise_xor.reduce(values)]
        numbers = results.numpy()
        assert_close(numbers[:6], np.array([total, values.min(), values.max(), *bits]), what="results")
        assert_close((numbers[6:7] + returned.numpy()), np.array([total]), what="exchanges")
        assert_close(numbers[7:], np.array([total]), what="compare and swap")


def _atomic_int64(device: Device) -> None:
    needs(device, "shaderInt64", "shaderBufferInt64Atomics")
    values = np.random.default_rng(7).integers(0, 1 << 62, 5000).astype(np.uint64)
    with (
        device.asarray(values) as source,
        device.asarray(np.array([0, (1 << 64) - 1, 0, 0], np.uint64)) as results,
        device.load_kernel(shaders.path("check/atomics_int64")) as kernel,
    ):
        kernel(source, results, groups=-(-5000 // 64))
        expected = np.array([values.sum(), values.min(), values.max(), np.bitwise_xor.reduce(values)])
        assert_close(results, expected, what="results")


def kernel_cases() -> Iterator[Case]:
    """Yields the cases of the area ``kernels``."""
    for title, case in _KERNELS.items():
        yield Case("kernels", title, case)
    for title, function in (
        ("atomics", _atomic_numbers),
        ("atomics of 64-bit integers", _atomic_int64),
        ("a sum of blocks in three dispatches", _prefix_sum),
        ("buffers by address", _address),
        ("a hundred dispatches in order", _chain),
    ):
        yield Case("kernels", title, function)
