"""Kernels of ggml's Vulkan backend, with the layouts that its host code gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from conformance.shaders.kernel_cases import Loader, close, given, kernel_case
from scipy import special

Floats = np.ndarray


def _fast_division(divisor: int) -> tuple[int, int]:
    """Multiplier and shift of a division by a constant: ``n // d == (mulhi(n, m) + n) >> s``."""
    shift = 0
    while shift < 32 and (1 << shift) < divisor:
        shift += 1
    return ((1 << 32) * ((1 << shift) - divisor)) // divisor + 1, shift


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Element strides of a C-contiguous array, the last axis first, for four axes."""
    lengths = [*reversed(shape), 1, 1, 1, 1][:4]
    return [math.prod(lengths[:axis]) for axis in range(4)]


def _tensor(prefix: str, shape: tuple[int, ...]) -> dict[str, int]:
    lengths = [*reversed(shape), 1, 1, 1, 1][:4]
    strides = _strides(shape)
    return {
        **{f"ne{prefix}{axis}": lengths[axis] for axis in range(4)},
        **{f"nb{prefix}{axis}": strides[axis] for axis in range(4)},
    }


def _unary_push(source: tuple[int, ...], result: tuple[int, ...], **parameters: float) -> dict[str, Any]:
    push: dict[str, Any] = {"ne": math.prod(source), **_tensor("0", source), **_tensor("1", result), **parameters}
    for number, shape in enumerate((source, result)):
        a, b, c, _ = [*reversed(shape), 1, 1, 1, 1][:4]
        packed = 0
        for slot, (name, divisor) in enumerate((("012", a * b * c), ("01", a * b), ("0", a))):
            push[f"ne{number}_{name}mp"], shift = _fast_division(divisor)
            packed |= shift << 8 * slot
        push[f"ne{number}_Ls"] = packed
    return push


def _rows(count: int) -> tuple[int, int, int]:
    """Workgroups for kernels that count y in blocks of 512 elements."""
    return 1, -(-count // 512), 1


def _unary(name: str, reference: Callable[[Floats], Floats], *, low: float = -4.0, **parameters: float) -> None:
    @kernel_case("ggml", name)
    def check(load: Loader, random: np.random.Generator) -> None:
        x = random.uniform(low, 4, (2, 3, 5, 37)).astype(np.float32)
        with load() as kernel:
            push = given(kernel, _unary_push(x.shape, x.shape, **parameters))
            close(kernel(x, out=np.empty_like(x), groups=_rows(x.size), push=push), reference(x), rtol=2e-5)


def _sigmoid(x: Floats) -> Floats:
    return special.expit(x)


def _gelu(x: Floats) -> Floats:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))


_unary("silu_f32", lambda x: x * _sigmoid(x))
_unary("gelu_f32", _gelu)
_unary("gelu_erf_f32", lambda x: 0.5 * x * (1 + special.erf(x / math.sqrt(2))))
_unary("sigmoid_f32", _sigmoid)
_unary("tanh_f32", np.tanh)
_unary("softplus_f32", lambda x: np.logaddexp(0, x))
_unary("hardswish_f32", lambda x: x * np.clip((x + 3) / 6, 0, 1))
_unary("leaky_relu_f32", lambda x: np.where(x > 0, x, 0.1 * x), param1=0.1)
_unary("clamp_f32", lambda x: np.clip(x, -1, 2), param1=-1.0, param2=2.0)
_unary("sqrt_f32", np.sqrt, low=0.0)
_unary("trunc_f32", np.trunc)


@kernel_case("ggml", "expm1_f16")
def _expm1(load: Loader, random: np.random.Generator) -> None:
    x = random.uniform(-2, 2, (3, 700)).astype(np.float16)
    with load() as kernel:
        push = given(kernel, _unary_push(x.shape, x.shape))
        close(kernel(x, out=np.empty_like(x), groups=_rows(x.size), push=push), np.expm1(x), rtol=2e-3, atol=1e-3)


@kernel_case("ggml", "tri_f32")
def _tri(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3, 40, 33), np.float32)
    with load() as kernel:
        kind = float(np.array(2, np.uint32).view(np.float32))  # lower, with its diagonal
        push = given(kernel, _unary_push(x.shape, x.shape, param1=kind))
        close(kernel(x, out=np.empty_like(x), groups=_rows(x.size), push=push), np.tril(x))


@kernel_case("ggml", "norm_f32")
def _norm(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((2, 7, 1000), np.float32)
    with load() as kernel:
        push = given(kernel, _unary_push(x.shape, x.shape, param1=1e-5))
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        got = kernel(x, out=np.empty_like(x), groups=(14, 1, 1), push=push)
        close(got, (x - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-4)


def _binary(name: str, reference: Callable[[Floats, Floats], Floats]) -> None:
    @kernel_case("ggml", name)
    def check(load: Loader, random: np.random.Generator) -> None:
        x = random.uniform(0.5, 2, (2, 3, 5, 70)).astype(np.float32)
        y = random.uniform(0.5, 2, (1, 1, 5, 70)).astype(np.float32)
        with load() as kernel:
            shapes = {**_tensor("0", x.shape), **_tensor("1", y.shape), **_tensor("2", x.shape)}
            push = given(kernel, {"ne": x.size, **shapes})
            got = kernel(x, y, np.empty_like(x), groups=_rows(x.size), push=push)
            close(got, reference(x, y))


_binary("add_f32_f32_f32", np.add)
_binary("sub_f32_f32_f32", np.subtract)
_binary("mul_f32_f32_f32", np.multiply)
_binary("div_f32_f32_f32", np.divide)


@kernel_case("ggml", "rms_norm_f32")
def _rms_norm(load: Loader, random: np.random.Generator) -> None:
    x, weight = random.standard_normal((2, 3, 5, 1300), np.float32), random.standard_normal(1300).astype(np.float32)
    with load(specialization={"do_multiply": True}) as kernel:
        shapes = {**_tensor("0", x.shape), **_tensor("1", weight.shape), **_tensor("2", x.shape)}
        push = given(kernel, {"ne": x.size, **shapes, "param1": 1e-6})
        got = kernel(x, weight, np.empty_like(x), groups=(5, 3, 2), push=push)
        close(got, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight, rtol=1e-4)


@kernel_case("ggml", "soft_max_f32")
def _soft_max(load: Loader, random: np.random.Generator) -> None:
    """With ALiBi slopes and a mask; the block size is set, as the module gives its id two defaults."""
    heads, rows, columns = 4, 6, 300
    x = random.standard_normal((heads, rows, columns), np.float32)
    mask = random.standard_normal((rows, columns), np.float32)
    bases = (2.0 ** (-8.0 / 4), 2.0 ** (-4.0 / 4))
    with load(specialization={0: 128}) as kernel:
        values = {
            "KX": columns, "KY": rows, "ne00": columns, "ne01": rows, "ne02": heads, "ne12": 1, "ne13": 1,
            "nb11": columns, "nb12": rows * columns, "nb13": rows * columns, "scale": 0.5, "max_bias": 8.0,
            "m0": bases[0], "m1": bases[1], "n_head_log2": 4, "nrows_x": heads * rows,
        }  # fmt: skip
        push = given(kernel, values)
        got = kernel(x, mask, np.zeros(1, np.float32), np.empty_like(x), groups=(heads * rows, 1, 1), push=push)
        slopes = bases[0] ** np.arange(1, heads + 1)[:, None, None]
        close(got, special.softmax(0.5 * x + slopes * mask, axis=-1), rtol=1e-4)


@kernel_case("ggml", "sum_rows_f32")
def _sum_rows(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((2, 3, 5, 1000), np.float32)
    with load(specialization={"BLOCK_SIZE": 64}) as kernel:
        push = given(kernel, _rows_push(x.shape, (2, 3, 5, 1)))
        close(kernel(x, np.empty((2, 3, 5), np.float32), groups=(30, 1, 1), push=push), x.sum(-1), atol=1e-3)


def _rows_push(source: tuple[int, ...], result: tuple[int, ...]) -> dict[str, Any]:
    _, b, c, _ = reversed(source)
    push: dict[str, Any] = {"n_cols": source[-1], "ne01": b, "ne02": c, "weight": 1.0}
    for prefix, shape in (("0", source), ("1", result)):
        push.update({f"nb{prefix}{axis}": _strides(shape)[axis] for axis in (1, 2, 3)})
    push["ne0_12mp"], push["ne0_12L"] = _fast_division(b * c)
    push["ne0_1mp"], push["ne0_1L"] = _fast_division(b)
    return push


@kernel_case("ggml", "cumsum_f32")
def _cumsum(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((1, 2, 3, 3000), np.float32)
    subgroup = load.device.profile.subgroup.size
    with load(specialization={"BLOCK_SIZE": 128, "SUBGROUP_SIZE": subgroup}) as kernel:
        push = given(kernel, _rows_push(x.shape, x.shape))
        close(kernel(x, np.empty_like(x), groups=(6, 1, 1), push=push), np.cumsum(x, -1), rtol=1e-3, atol=1e-3)


@kernel_case("ggml", "argmax_f32")
def _argmax(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((9, 1500), np.float32)
    with load(specialization={"BLOCK_SIZE": 64}) as kernel:
        got = kernel(x, np.empty(9, np.int32), groups=(9, 1, 1), push=given(kernel, {"KX": 1500, "KY": 9}))
        np.testing.assert_array_equal(got, x.argmax(-1))


@kernel_case("ggml", "argsort_f32")
def _argsort(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((5, 200), np.float32)
    with load(specialization={"BLOCK_SIZE": 256, "NCOLS_PADDED_LOG2": 8}) as kernel:
        values = {"ncols": 200, "ncols_padded": 256, "ncols_padded_log2": 8, "nrows": 5}
        # The last block reads past its row; the array has a margin.
        padded = np.concatenate([x.reshape(-1), np.zeros(56, np.float32)])
        got = kernel(padded, np.empty((5, 200), np.int32), groups=(1, 5, 1), push=given(kernel, values))
        np.testing.assert_array_equal(got, np.argsort(x, -1))


@kernel_case("ggml", "diag_mask_inf_f32")
def _diag_mask_inf(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((12, 600), np.float32)
    with load() as kernel:
        push = given(kernel, {"ncols": 600, "rows_per_channel": 6, "n_past": 3})
        columns, rows = np.arange(600)[None], np.arange(12)[:, None]
        got = kernel(x, np.empty_like(x), groups=(12, 2, 1), push=push)
        close(got, np.where(columns > 3 + rows % 6, -np.inf, x))


@kernel_case("ggml", "get_rows_f32_f32")
def _get_rows(load: Loader, random: np.random.Generator) -> None:
    table, rows = random.standard_normal((50, 700), np.float32), random.integers(0, 50, 13, np.int32)
    with load() as kernel:
        shapes = {**_tensor("0", (50, 700)), **_tensor("1", (13,)), **_tensor("2", (13, 700))}
        got = kernel(table, rows, np.empty((13, 700), np.float32), groups=(2, 13, 1), push=given(kernel, shapes))
        close(got, table[rows])


@kernel_case("ggml", "im2col_f32")
def _im2col(load: Loader, random: np.random.Generator) -> None:
    (batch, channels, height, width), (kh, kw) = (2, 3, 9, 11), (3, 3)
    x = random.standard_normal((batch, channels, height, width), np.float32)
    with load(specialization={"BLOCK_SIZE": 32}) as kernel:
        values = {
            "batch_offset": channels * height * width, "offset_delta": height * width, "IC": channels, "IW": width,
            "IH": height, "OW": width, "OH": height, "KW": kw, "KH": kh, "OH_batch": height * batch,
            "CHW": channels * kh * kw, "s0": 1, "s1": 1, "p0": 1, "p1": 1, "d0": 1, "d1": 1,
            "batch_IC": batch * channels,
        }  # fmt: skip
        out = np.empty((batch, height, width, channels, kh, kw), np.float32)
        got = kernel(x, out, groups=(1, width, height * batch), push=given(kernel, values))
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), (2, 3))
        close(got, windows.transpose(0, 2, 3, 1, 4, 5))


@kernel_case("ggml", "pool2d_f32")
def _pool2d(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((6, 20, 24), np.float32)
    with load() as kernel:
        values = {"IW": 24, "IH": 20, "OW": 12, "OH": 10, "OC": 6, "pelements": 6 * 120, "op": 0}
        values |= {"k0": 2, "k1": 2, "s0": 2, "s1": 2}
        got = kernel(x, np.empty((6, 10, 12), np.float32), groups=(2, 1, 1), push=given(kernel, values))
        close(got, x.reshape(6, 10, 2, 12, 2).max((2, 4)))


@kernel_case("ggml", "upscale_f32")
def _upscale(load: Loader, random: np.random.Generator) -> None:
    """Bilinear, by two, with pixel centres at halves."""
    x = random.standard_normal((1, 2, 7, 9), np.float32)
    with load(specialization={"scale_mode": 1}) as kernel:
        lengths = {"ne00": 9, "ne01": 7, "ne10": 18, "ne11": 14, "ne12": 2, "ne13": 1, "ne": 2 * 18 * 14}
        strides = {f"nb0{axis}": _strides(x.shape)[axis] for axis in range(4)}
        scales = {"sf0": 2.0, "sf1": 2.0, "sf2": 1.0, "sf3": 1.0, "pixel_offset": 0.5}
        got = kernel(
            x, np.empty((2, 14, 18), np.float32), groups=_rows(504), push=given(kernel, lengths | strides | scales)
        )
        close(got, _bilinear(x[0], 14, 18), rtol=1e-4)


def _bilinear(x: Floats, height: int, width: int) -> Floats:
    def places(count: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        at = (np.arange(count) + 0.5) * length / count - 0.5
        low = np.floor(at).astype(int)
        return np.maximum(low, 0), np.minimum(low + 1, length - 1), (at - low).astype(np.float32)

    top, bottom, dy = places(height, x.shape[-2])
    left, right, dx = places(width, x.shape[-1])
    rows = x[..., top, :] * (1 - dy[:, None]) + x[..., bottom, :] * dy[:, None]
    return rows[..., left] * (1 - dx) + rows[..., right] * dx


@kernel_case("ggml", "concat_i32")
def _concat(load: Loader, random: np.random.Generator) -> None:
    x, y = (random.integers(-100, 100, (2, rows, 30), np.int32) for rows in (3, 5))
    with load() as kernel:
        shapes = {**_tensor("0", x.shape), **_tensor("1", y.shape), **_tensor("2", (2, 8, 30))}
        push = given(kernel, {"ne": 480, **shapes, "param3": 1})
        dtype = kernel.parameters[0].binding.element.dtype  # type: ignore[union-attr]
        got = kernel(x.view(dtype), y.view(dtype), np.empty((2, 8, 30), dtype), groups=_rows(480), push=push)
        np.testing.assert_array_equal(np.asarray(got).view(np.int32), np.concatenate([x, y], 1))


@kernel_case("ggml", "timestep_embedding_f32")
def _timestep_embedding(load: Loader, random: np.random.Generator) -> None:
    steps = random.uniform(0, 10, 6).astype(np.float32)
    with load() as kernel:
        push = given(kernel, {"nb1": 320, "dim": 320, "max_period": 10000})
        got = kernel(steps, np.empty((6, 320), np.float32), groups=(1, 6, 1), push=push)
        angles = steps[:, None] * np.exp(-math.log(10000) * np.arange(160) / 160)
        close(got, np.concatenate([np.cos(angles), np.sin(angles)], 1), rtol=1e-4, atol=1e-4)


@kernel_case("ggml", "conv_transpose_1d_f32")
def _conv_transpose(load: Loader, random: np.random.Generator) -> None:
    channels, features, taps, length, stride = 3, 4, 5, 150, 2
    weight = random.standard_normal((channels, features, taps), np.float32)
    x = random.standard_normal((channels, length), np.float32)
    total = (length - 1) * stride + taps
    with load() as kernel:
        sizes = {"Cout": features, "Cin": channels, "K": taps, "L": length, "KL": total, "s0": stride}
        strides = {"nb01": taps, "nb02": taps * features, "nb11": length, "nb1": total}
        got = kernel(
            weight,
            x,
            np.empty((features, total), np.float32),
            groups=(features, 1, 1),
            push=given(kernel, sizes | strides),
        )
        wanted = np.zeros((features, total))
        for at in range(length):
            wanted[:, at * stride : at * stride + taps] += np.einsum("cfk,c->fk", weight, x[:, at])
        close(got, wanted, rtol=1e-4, atol=1e-4)


@kernel_case("ggml", "swiglu_f32")
def _swiglu(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((3, 40, 256), np.float32)
    with load() as kernel:
        push: dict[str, Any] = {"N": 3 * 40 * 128, "ne00": 256, "ne20": 128, "ne21": 40, "ne22": 3}
        for prefix, shape in (("0", x.shape), ("1", x.shape), ("2", (3, 40, 128))):
            push |= {f"nb{prefix}{axis}": _strides(shape)[axis] for axis in range(4)}
        for name, divisor in (("012", 128 * 40 * 3), ("01", 128 * 40), ("0", 128)):
            push[f"ne2_{name}mp"], push[f"ne2_{name}L"] = _fast_division(divisor)
        got = kernel(x, x, np.empty((3, 40, 128), np.float32), groups=_rows(push["N"]), push=given(kernel, push))
        gate, up = x[..., :128], x[..., 128:]
        close(got, gate * _sigmoid(gate) * up)


def _rope(
    name: str, pairs: Callable[[Floats], tuple[Floats, Floats]], join: Callable[[Floats, Floats], Floats]
) -> None:
    @kernel_case("ggml", name)
    def check(load: Loader, random: np.random.Generator) -> None:
        tokens, heads, size = 5, 3, 64
        x = random.standard_normal((tokens, heads, size), np.float32)
        positions = random.integers(0, 100, tokens, np.int32)
        scale = 10000.0 ** (-2 / size)
        with load() as kernel:
            values = {
                "nrows": tokens * heads, "n_dims": size, "freq_scale": 1.0, "freq_base": 10000.0, "attn_factor": 1.0,
                "theta_scale": scale, "ne00": size, "ne01": heads, "ne02": tokens,
                **{f"nb{prefix}{axis}": _strides(x.shape)[axis] for prefix in "01" for axis in (1, 2, 3)},
            }  # fmt: skip
            block = kernel.pipeline.entry.push_constants
            assert block is not None
            (struct,) = block.members
            zero = {m.name: [0] * m.array_shape[0] if m.array_shape else 0 for m in struct.members}
            one = np.zeros(1, np.float32)
            got = kernel(
                *(x, positions, one, np.empty_like(x), np.zeros((1, 2), np.uint32)),
                groups=(tokens * heads, -(-size // 512), 1),
                push={struct.name: zero | values},
            )
            angles = positions[:, None, None] * scale ** np.arange(size // 2)
            first, second = pairs(x)
            cos, sin = np.cos(angles), np.sin(angles)
            close(got, join(first * cos - second * sin, first * sin + second * cos), rtol=1e-3, atol=1e-3)


_rope(
    "rope_norm_f32", lambda x: (x[..., ::2], x[..., 1::2]), lambda a, b: np.stack([a, b], -1).reshape(*a.shape[:2], -1)
)
_rope("rope_neox_f32", lambda x: np.split(x, 2, -1), lambda a, b: np.concatenate([a, b], -1))  # type: ignore[arg-type]


@kernel_case("ggml", "flash_attn_f32_f16")
def _flash_attention(load: Loader, random: np.random.Generator) -> None:
    """Four heads that share two of keys and values, with a mask; every size is a specialisation constant."""
    tokens, keys, heads, shared, size = 6, 64, 4, 2, 64
    q = random.standard_normal((heads, tokens, size), np.float32)
    k, v = (random.standard_normal((shared, keys, size)).astype(np.float16) for _ in range(2))
    mask = np.where(np.arange(keys) > 40 + np.arange(tokens)[:, None], -np.inf, 0).astype(np.float16)
    sizes = {"WorkGroupSize": 128, "Br": 4, "Bc": 32, "HSK": size, "HSV": size, "Clamp": 1, "D_split": 8}
    sizes |= {"row_split": 1, "SubGroupSize": 0, "Flags": 2, "FaTypeK": 1, "FaTypeV": 1}
    with load(specialization=sizes) as kernel:
        values = {
            "N": tokens, "KV": keys, "ne1": heads, "ne2": tokens, "ne3": 1, "neq2": heads, "neq3": 1, "nek2": shared,
            "nek3": 1, "nev2": shared, "nev3": 1, "nem1": tokens, "nem2": 1, "nem3": 1, "nb01": size,
            "nb02": 4 * size * tokens, "nb03": 4 * q.size, "nb11": size, "nb12": 2 * size * keys, "nb13": 2 * k.size,
            "nb21": size, "nb22": 2 * size * keys, "nb23": 2 * v.size, "scale": size**-0.5, "mask_n_head_log2": 4,
            "gqa_ratio": 1, "split_kv": keys, "k_num": 1,
        }  # fmt: skip
        arrays = {0: q, 1: k, 2: v, 3: mask, 4: np.zeros(heads, np.float32), 6: np.zeros(64, np.uint32)}
        arrays[5] = np.empty((tokens, heads, size), np.float32)
        given_arrays = [arrays[p.binding.binding] for p in kernel.parameters]
        got = kernel(*given_arrays, groups=(-(-tokens // 4), heads, 1), push=given(kernel, values))
        wide_k, wide_v = (np.repeat(a.astype(np.float32), heads // shared, 0) for a in (k, v))
        weights = special.softmax(q @ wide_k.transpose(0, 2, 1) * size**-0.5 + mask.astype(np.float32), -1)
        close(got, (weights @ wide_v).transpose(1, 0, 2), rtol=5e-3, atol=5e-3)
