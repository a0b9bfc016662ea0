"""The results of each shader in NumPy, with inputs to try it on: `CASES`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.generic]
Reference: TypeAlias = Callable[[Sequence[Array]], dict[int, Array]]
Groups: TypeAlias = tuple[int, ...]

SENTINEL = 0xCD


@dataclass(frozen=True)
class Pass:
    """One dispatch.

    Attributes:
        groups: workgroups in x, y, z.
        push: the push constants from offset 0; empty where the shader has none.
    """

    groups: Groups
    push: bytes = b""


@dataclass(frozen=True)
class Case:
    """One shader with inputs and what comes out.

    Attributes:
        name: unique among `CASES`.
        shader: the shader's name in `pumice.shaders`.
        buffers: contents of the storage buffers before the first pass.
        passes: the dispatches in order.
        reference: from the buffers' contents to what those that change (by buffer index) hold afterwards.
        bindings: index into ``buffers`` for each binding of set 0.
        spec: specialization constants (unsigned 32-bit) by id.
        rtol: relative tolerance; 0 compares bytes.
        atol: absolute tolerance, added to the relative one.
    """

    name: str
    shader: str
    buffers: tuple[Array, ...]
    passes: tuple[Pass, ...]
    reference: Reference
    bindings: tuple[int, ...]
    spec: Mapping[int, int] = field(default_factory=dict)
    rtol: float = 0.0
    atol: float = 0.0

    def expected(self) -> list[Array]:
        """Returns the contents of every buffer afterwards."""
        changed = self.reference([buffer.copy() for buffer in self.buffers])
        return [changed.get(index, buffer) for index, buffer in enumerate(self.buffers)]

    def check(self, results: Sequence[bytes]) -> None:
        """Compare the buffers' contents after the last pass, all of them, with the reference.

        Args:
            results: one for each of ``buffers``, at least as long.

        Raises:
            AssertionError: they differ.
        """
        assert len(results) == len(self.buffers)
        for index, (result, expected) in enumerate(zip(results, self.expected(), strict=True)):
            actual = np.frombuffer(result, dtype=expected.dtype, count=expected.size).reshape(expected.shape)
            message = f"{self.name}: buffer {index}"
            if self.rtol or self.atol:
                np.testing.assert_allclose(_f64(actual), _f64(expected), self.rtol, self.atol, err_msg=message)
            else:
                np.testing.assert_array_equal(_bytes(actual), _bytes(expected), err_msg=message)


def _bytes(array: Array) -> npt.NDArray[np.uint8]:
    return np.frombuffer(array.tobytes(), np.uint8)


def _unwritten(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    array = np.empty(shape, dtype)
    array.view(np.uint8).fill(SENTINEL)
    return array


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(list(name.encode()))


def _f32(name: str, *shape: int) -> npt.NDArray[np.float32]:
    return _random(name).standard_normal(shape, np.float32)


def _up(count: int, by: int) -> int:
    return -(-count // by)


def _f64(array: Array) -> npt.NDArray[np.float64]:
    return array.astype(np.float64)


def _case(
    name: str,
    shader: str,
    buffers: tuple[Array, ...],
    reference: Reference,
    groups: Groups,
    push: bytes = b"",
    *,
    bindings: tuple[int, ...] | None = None,
    spec: Mapping[int, int] | None = None,
    error: tuple[float, float] = (0.0, 0.0),
) -> Case:
    """Returns a case of one pass; ``error`` is the relative and the absolute tolerance."""
    bound = tuple(range(len(buffers))) if bindings is None else bindings
    return Case(name, shader, buffers, (Pass((*groups, 1, 1)[:3], push),), reference, bound, spec or {}, *error)


def mul(n: int, groups: int) -> Case:
    name = f"mul[{n},{groups}]"
    buffers = (_f32(f"{name}a", n), _f32(f"{name}b", n), _unwritten(n, np.float32))
    return _case(name, "mul", buffers, lambda b: {2: np.multiply(b[0], b[1])}, (groups,))


def mul_shortest(n: int) -> Case:
    """The arrays have different lengths; the shortest counts."""
    name = f"mul_shortest[{n}]"
    buffers = (_f32(f"{name}a", n + 70), _f32(f"{name}b", n), _unwritten(n + 9, np.float32))
    return _case(
        name, "mul", buffers, lambda b: {2: np.append(np.multiply(b[0][:n], b[1]), b[2][n:])}, (_up(n, 64) + 1,)
    )


def saxpy(n: int, a: float) -> Case:
    name = f"saxpy[{n}]"

    # Whether the device fuses the multiplication and the addition is its own choice.
    def reference(b: Sequence[Array]) -> dict[int, Array]:
        return {1: (np.float64(np.float32(a)) * _f64(b[0]) + _f64(b[1])).astype(np.float32)}

    buffers = (_f32(f"{name}x", n), _f32(f"{name}y", n))
    push = struct.pack("<f", a)
    return _case(name, "examples/saxpy", buffers, reference, (_up(n, 64),), push, error=(1e-6, 1e-6))


def reduction(n: int, groups: int, local: int) -> Case:
    """The partial sums; one group makes the sum of all."""
    name = f"reduction[{n},{groups},{local}]"

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        lane = np.arange(n) % (groups * local) // local
        return {1: np.bincount(lane, weights=_f64(b[0]), minlength=groups).astype(np.float32)}

    buffers = (_f32(name, n), _unwritten(groups, np.float32))
    push = struct.pack("<I", n)
    spec = {0: local}
    return _case(name, "examples/reduction", buffers, reference, (groups,), push, spec=spec, error=(1e-5, 1e-4))


def _product(b: Sequence[Array]) -> dict[int, Array]:
    return {2: (_f64(b[0]) @ _f64(b[1])).astype(np.float32)}


def matmul(m: int, n: int, k: int) -> Case:
    name = f"matmul[{m},{n},{k}]"
    buffers = (_f32(f"{name}a", m, k), _f32(f"{name}b", k, n), _unwritten((m, n), np.float32))
    groups, push = (_up(n, 32), _up(m, 32)), struct.pack("<III", m, n, k)
    return _case(name, "examples/matmul", buffers, _product, groups, push, error=(1e-5, 1e-4))


def prefix_sum(n: int) -> Case:
    name = f"prefix_sum[{n}]"
    blocks = _up(n, 512)

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        sums = np.cumsum(b[0], dtype=np.uint32)
        ends = np.minimum(np.arange(1, blocks + 1) * 512, n) - 1
        return {1: sums, 2: sums[ends]}

    values = _random(name).integers(0, 2**32, n, np.uint32)
    return Case(
        name,
        "examples/prefix_sum",
        (values, _unwritten(n, np.uint32), _unwritten(blocks, np.uint32)),
        tuple(Pass((groups, 1, 1), struct.pack("<II", n, i)) for i, groups in enumerate((blocks, 1, blocks))),
        reference,
        (0, 1, 2),
    )


def mandelbrot(width: int, height: int, iterations: int) -> Case:
    left, top = np.float32(-2.1), np.float32(-1.2)
    step_x, step_y = np.float32(2.8 / width), np.float32(2.4 / height)

    def reference(_: Sequence[Array]) -> dict[int, Array]:
        c_re = np.broadcast_to(left + np.arange(width, dtype=np.float32) * step_x, (height, width))
        c_im = np.broadcast_to((top + np.arange(height, dtype=np.float32) * step_y)[:, None], (height, width))
        re, im = np.zeros_like(c_re), np.zeros_like(c_im)
        counts = np.zeros((height, width), np.uint32)
        alive = np.ones((height, width), np.bool_)
        for _step in range(iterations):
            re_squared, im_squared, cross_term = re * re, im * im, re * im
            alive &= re_squared + im_squared <= 4
            counts += alive
            im = np.where(alive, (cross_term + cross_term) + c_im, im)
            re = np.where(alive, (re_squared - im_squared) + c_re, re)
        return {0: counts}

    push = struct.pack("<III4f", width, height, iterations, left, top, step_x, step_y)
    buffers = (_unwritten((height, width), np.uint32),)
    groups = (_up(width, 8), _up(height, 8))
    return _case(f"mandelbrot[{width},{height}]", "examples/mandelbrot", buffers, reference, groups, push)


def histogram(n: int, groups: int) -> Case:
    name = f"histogram[{n}]"

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        return {1: np.bincount(b[0][:n], minlength=256).astype(np.uint32)}

    # The bytes after the last one counted are not zero, so counting them would show.
    buffers = (_random(name).integers(0, 256, _up(n, 4) * 4, np.uint8), np.zeros(256, np.uint32))
    return _case(name, "examples/histogram", buffers, reference, (groups,), struct.pack("<I", n))


def transpose(rows: int, columns: int) -> Case:
    name = f"transpose[{rows},{columns}]"
    values = _random(name).integers(0, 2**32, (rows, columns), np.uint32)
    buffers = (values, _unwritten((columns, rows), np.uint32))
    groups, push = (_up(columns, 32), _up(rows, 32)), struct.pack("<II", rows, columns)
    return _case(name, "examples/transpose", buffers, lambda b: {1: np.ascontiguousarray(b[0].T)}, groups, push)


def gemv(m: int, n: int, groups: int) -> Case:
    name = f"gemv[{m},{n},{groups}]"
    buffers = (_f32(f"{name}a", m, n), _f32(f"{name}x", n), _unwritten(m, np.float32))
    push = struct.pack("<II", m, n)
    return _case(name, "examples/gemv", buffers, _product, (groups,), push, error=(1e-5, 1e-4))


def softmax(rows: int, columns: int, groups: int) -> Case:
    name = f"softmax[{rows},{columns},{groups}]"

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        logits = _f64(b[0])
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return {1: (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)}

    # exp() of GLSL may be off by 3 + 2 |x| ULP (Vulkan specification, precision of extended instructions).
    buffers = (4 * _f32(name, rows, columns), _unwritten((rows, columns), np.float32))
    push = struct.pack("<II", rows, columns)
    return _case(name, "examples/softmax", buffers, reference, (groups,), push, error=(2e-5, 1e-7))


def game_of_life(width: int, height: int) -> Case:
    name = f"game_of_life[{width},{height}]"

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        cells = b[0].astype(np.uint32)
        shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
        neighbours = sum(np.roll(cells, shift, (0, 1)) for shift in shifts)
        return {1: ((neighbours == 3) | ((neighbours == 2) & (cells == 1))).astype(np.uint32)}

    cells = _random(name).integers(0, 2, (height, width), np.uint32)
    groups, push = (_up(width, 8), _up(height, 8)), struct.pack("<II", width, height)
    return _case(name, "examples/game_of_life", (cells, _unwritten(cells.shape, np.uint32)), reference, groups, push)


def _word_groups(offset: int, size: int) -> int:
    """Workgroups of 64 invocations for the words of a byte range."""
    words = (offset + size + 3) // 4 - offset // 4
    return max(1, _up(words, 64))


def fill_unaligned(buffer_size: int, offset: int, size: int, pattern: bytes, groups: int | None = None) -> Case:
    name = f"fill_unaligned[{buffer_size},{offset},{size},{pattern.hex()}]"
    word = pattern * (4 // len(pattern))

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        target = b[0].copy()
        target[offset : offset + size] = np.resize(np.frombuffer(pattern, np.uint8), size)
        return {0: target}

    buffers = (_random(name).integers(0, 256, buffer_size, np.uint8),)
    push = struct.pack("<2I", offset, size) + word
    return _case(name, "builtin/fill_unaligned", buffers, reference, (groups or _word_groups(offset, size),), push)


def copy_unaligned(
    source_size: int,
    target_size: int,
    source_offset: int,
    target_offset: int,
    size: int,
    *,
    same: bool = False,
    groups: int | None = None,
) -> Case:
    """With ``same`` there is one buffer, of ``source_size`` bytes, bound twice."""
    name = f"copy_unaligned[{source_size},{target_size},{source_offset},{target_offset},{size},{same}]"
    target_index = 0 if same else 1

    def reference(b: Sequence[Array]) -> dict[int, Array]:
        target = b[target_index].copy()
        target[target_offset : target_offset + size] = b[0][source_offset : source_offset + size]
        return {target_index: target}

    sizes = (source_size,) if same else (source_size, target_size)
    push = struct.pack("<3I", source_offset, target_offset, size)
    buffers = tuple(_random(f"{name}{i}").integers(0, 256, n, np.uint8) for i, n in enumerate(sizes))
    return _case(
        name,
        "builtin/copy_unaligned",
        buffers,
        reference,
        (groups or _word_groups(target_offset, size),),
        push,
        bindings=(0, target_index),
    )


def _fill_cases() -> list[Case]:
    pattern = bytes.fromhex("a1b2c3d4")
    cases = [
        fill_unaligned(16, offset, size, pattern[:length])
        for offset in range(5)
        for size in (*range(10), 16 - offset)
        for length in (1, 2, 4)
        if size != 9 or length == 4
    ]
    cases += [fill_unaligned(4096, offset, 4096 - offset - 3, pattern) for offset in range(4)]
    return [*cases, fill_unaligned(4096, 5, 4000, pattern[:2], groups=1)]


def _copy_cases() -> list[Case]:
    cases = [
        copy_unaligned(16, 20, source, target, size)
        for source in range(5)
        for target in range(5)
        for size in (0, 1, 2, 3, 4, 5, 7, 8, 16 - max(source, target))
    ]
    # The ends of both buffers are reached.
    cases += [copy_unaligned(4096, 4100, 4096 - n, 4100 - n, n) for n in (1, 2, 3, 5, 1027)]
    # The ranges meet inside a word, the target after the source and before it.
    cases += [copy_unaligned(64, 64, o, o + n, n, same=True) for o in range(4) for n in (1, 2, 3, 5, 6, 9, 22)]
    cases += [copy_unaligned(64, 64, o + n, o, n, same=True) for o in range(4) for n in (1, 2, 3, 5, 6, 9, 22)]
    return [*cases, copy_unaligned(4096, 4096, 1, 6, 4001, groups=2)]


def _sweep(count: int, groups: int) -> Case:
    words = np.arange(4 * count, dtype=np.uint32).reshape(count, 4)
    words[-1] = 0xFFFFFFFF
    return _case(
        f"sweep {count} by {groups}", "timing/sweep", (words,), lambda b: {0: np.add(b[0], np.uint32(1))}, (groups,)
    )


def _copy_kernel(count: int, target: int, groups: int, local_size: int) -> Case:
    def reference(buffers: Sequence[Array]) -> dict[int, Array]:
        result, shorter = buffers[1], min(count, target)
        result[:shorter] = buffers[0][:shorter]
        return {1: result}

    name = f"copy {count} to {target} by {groups} of {local_size}"
    buffers = (np.arange(4 * count, dtype=np.float32).reshape(count, 4), _unwritten((target, 4), np.float32))
    return _case(name, "timing/copy", buffers, reference, (groups,), spec={0: local_size})


def _fma(count: int, local_size: int, iterations: int, factor: float) -> Case:
    def reference(buffers: Sequence[Array]) -> dict[int, Array]:
        value = np.arange(local_size, dtype=np.float64)[:, None] + np.arange(8, dtype=np.float64)
        for _ in range(iterations):
            value = value * factor + factor
        invocations = _up(count, local_size)
        sums = np.tile(value.sum(axis=1), invocations)[:count]
        return {0: np.repeat(sums[:, None], 4, axis=1).astype(np.float32)}

    name = f"fma {count} of {local_size}, {iterations} iterations of {factor}"
    buffers, push = (_unwritten((count, 4), np.float32),), struct.pack("<If", iterations, factor)
    spec = {0: local_size}
    return _case(name, "timing/fma", buffers, reference, (_up(count, local_size),), push, spec=spec, error=(1e-5, 0))


def _load(count: int, groups: int, local_size: int, rounds: int) -> Case:
    elements = np.linspace(-3, 5, 4 * count, dtype=np.float32).reshape(count, 4)

    def reference(buffers: Sequence[Array]) -> dict[int, Array]:
        chains = buffers[0].astype(np.float64) + np.arange(4)[:, None, None]
        for _ in range(2 * rounds):
            chains = chains * 0.5 + 1.0
        return {0: chains.mean(axis=0).astype(np.float32)}

    name = f"load of {count} by {groups} groups of {local_size}, {rounds} rounds"
    push, spec = struct.pack("<I", rounds), {0: local_size}
    return _case(name, "timing/load", (elements,), reference, (groups,), push, spec=spec, error=(1e-5, 0))


CASES: list[Case] = [
    *(_sweep(*sizes) for sizes in ((1, 1), (1000, 3))),
    *(_copy_kernel(*sizes) for sizes in ((1000, 1000, 4, 64), (100, 90, 1, 32))),
    *(_fma(64, 64, 0, 1.0), _fma(100, 32, 17, 0.75)),
    *(_load(*sizes) for sizes in ((64, 1, 64, 0), (1000, 3, 32, 2))),
    *(mul(4, 1), mul(1000, 16), mul_shortest(100)),
    *(saxpy(1, 2.5), saxpy(1000, -0.37)),
    *(reduction(*sizes) for sizes in ((1, 1, 128), (5000, 7, 128), (5000, 3, 32), (77, 1, 1))),
    *(matmul(*sizes) for sizes in ((1, 1, 1), (32, 32, 16), (67, 45, 83))),
    *(prefix_sum(n) for n in (1, 512, 513, 150_000)),
    *(mandelbrot(*sizes) for sizes in ((1, 1, 5), (70, 53, 60))),
    *(histogram(*sizes) for sizes in ((1, 1), (10_003, 3))),
    *(transpose(*sizes) for sizes in ((1, 1), (32, 64), (45, 71))),
    *(gemv(*sizes) for sizes in ((1, 1, 1), (37, 300, 37), (37, 300, 5))),
    *(softmax(*sizes) for sizes in ((1, 1, 1), (9, 333, 9), (9, 333, 2))),
    *(game_of_life(*sizes) for sizes in ((8, 8), (13, 21))),
    *_fill_cases(),
    *_copy_cases(),
]
