"""Functions of JAX to export with a batch ``b`` that is known when they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax, nn

Array: TypeAlias = npt.NDArray[Any]
Spec: TypeAlias = tuple[str, str]
"""Lengths of an argument, with ``b`` among them, and its dtype; ``index`` is int32 numbers below ``b``."""

F32 = "float32"


def _normalized(h: Any) -> Any:
    return (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) + 1e-5)


def _cnn(x: Any, w1: Any, w2: Any, dense: Any) -> Any:
    h = nn.relu(lax.conv(nn.relu(lax.conv(x, w1, (1, 1), "SAME")), w2, (2, 2), "SAME"))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return nn.softmax(h.reshape(x.shape[0], -1) @ dense)


def _block(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    """A transformer block over (batch, time, features)."""

    def heads(a: Any) -> Any:
        return a.reshape(x.shape[0], x.shape[1], 2, -1).transpose(0, 2, 1, 3)

    h = _normalized(x)
    q, k, v = heads(h @ wq), heads(h @ wk), heads(h @ wv)
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    attention = nn.softmax(jnp.where(mask, q @ k.transpose(0, 1, 3, 2) / 2, -1e9), -1) @ v
    x = x + attention.transpose(0, 2, 1, 3).reshape(x.shape) @ wo
    return x + nn.gelu(_normalized(x) @ w1) @ w2


def _attention(q: Any, k: Any, v: Any) -> Any:
    """Over a sequence of unknown length: scores of b times b."""
    mask = jnp.tril(jnp.ones((q.shape[0], q.shape[0]), bool))
    return nn.softmax(jnp.where(mask, q @ k.T, -1e9), -1) @ v


def _lstm(xs: Any, wi: Any, wh: Any, bias: Any) -> Any:
    """A scan over time, each step of the whole batch."""

    def step(carry: Any, x: Any) -> Any:
        hidden, cell = carry
        i, f, g, o = jnp.split(x @ wi + hidden @ wh + bias, 4, -1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(g)
        hidden = nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    start = jnp.zeros((xs.shape[0], 6))
    return lax.scan(step, (start, start), xs.transpose(1, 0, 2))


def _scan_over_batch(xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w + x)
        return h, h

    return lax.scan(step, jnp.zeros(4), xs)


def _training_step(x: Any, y: Any, w1: Any, w2: Any) -> Any:
    def loss(weights: Any) -> Any:
        return ((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)((w1, w2))
    return value, [w - 0.1 * g for w, g in zip((w1, w2), gradients, strict=True)]


def _newton(x: Any) -> Any:
    """A loop until all have converged, whose carry has the batch."""
    return lax.while_loop(
        lambda state: jnp.any(jnp.abs(state * state - x) > 1e-3 * x), lambda state: (state + x / state) / 2, x
    )


def _fori(x: Any) -> Any:
    """As many steps as there are rows."""
    return lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i] * (i + 1.0), jnp.zeros(x.shape[1]))


def _batch_norm(x: Any, scale: Any, bias: Any) -> Any:
    return nn.relu((x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5) * scale + bias)


FUNCTIONS: Mapping[str, tuple[Callable[..., Any], Sequence[Spec]]] = {
    "mlp": (
        lambda x, w1, b1, w2: nn.log_softmax(nn.relu(x @ w1 + b1) @ w2),
        (("b,8", F32), ("8,16", F32), ("16", F32), ("16,5", F32)),
    ),
    "cnn": (_cnn, (("b,2,8,8", F32), ("3,2,3,3", F32), ("4,3,3,3", F32), ("16,5", F32))),
    "transformer_block": (
        _block,
        (("b,5,8", F32), ("8,8", F32), ("8,8", F32), ("8,8", F32), ("8,8", F32), ("8,12", F32), ("12,8", F32)),
    ),
    "attention": (_attention, (("b,4", F32), ("b,4", F32), ("b,3", F32))),
    "lstm": (_lstm, (("b,5,4", F32), ("4,24", F32), ("6,24", F32), ("24", F32))),
    "scan_over_batch": (_scan_over_batch, (("b,4", F32), ("4,4", F32))),
    "training_step": (_training_step, (("b,6", F32), ("b,2", F32), ("6,5", F32), ("5,2", F32))),
    "newton": (_newton, (("b", "positive"),)),
    "fori_loop": (_fori, (("b,3", F32),)),
    "batch_norm": (_batch_norm, (("b,5", F32), ("5", F32), ("5", F32))),
    "sum": (lambda x: x.sum(), (("b,5", F32),)),
    "mean_and_variance": (lambda x: (x.mean(0), x.var(0), x.std(1)), (("b,5", F32),)),
    "max_min_all_any": (lambda x: (x.max(0), x.min(), (x > 0).all(0), (x > 1).any(1)), (("b,5", F32),)),
    "softmax": (lambda x: (nn.softmax(x, 0), nn.logsumexp(x, 0)), (("b,5", F32),)),
    "matmul": (lambda x, w: x @ w, (("b,24", F32), ("24,9", F32))),
    "gram": (lambda x: (x @ x.T, x.T @ x), (("b,6", F32),)),
    "batched_matmul": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), (("b,3,4", F32), ("b,4,2", F32))),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x]), (("b,4", F32), ("2*b,4", F32))),
    "interleave": (lambda x, y: jnp.stack([x, y], 1).reshape(-1, 4), (("b,4", F32), ("b,4", F32))),
    "reshape": (lambda x: (x.reshape(-1), x.reshape(x.shape[0] * 2, 3)), (("b,6", F32),)),
    "strides": (lambda x: (x[::2], x[1::3], x[:, ::2]), (("b + 1,4", F32),)),
    "batch_and_time": (lambda x, y: (jnp.einsum("bti,btj->ij", x, y), x.mean()), (("b,5,4", F32), ("b,5,3", F32))),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0), (("b,3", F32),)),
    "slices": (lambda x: (x[1:], x[:-1], x[-1], x[0], x[:, 1:3]), (("b,4", F32),)),
    "differences": (lambda x: (x[1:] - x[:-1], jnp.diff(x, axis=0)), (("b,4", F32),)),
    "reverse": (lambda x: (x[::-1], jnp.flip(x, 1)), (("b,4", F32),)),
    "tile_repeat": (lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 3, 0)), (("b,3", F32),)),
    "gather": (lambda x, i: (x[i], jnp.take(x, i, axis=0)), (("b,4", F32), ("6", "index"))),
    "take_along": (lambda x, i: jnp.take_along_axis(x, i, 1), (("b,4", F32), ("b,2", "small"))),
    "scatter_add": (lambda x, i, u: x.at[i].add(u), (("b,4", F32), ("6", "index"), ("6,4", F32))),
    "scatter_rows": (lambda x, i, u: x.at[i].set(u[: i.shape[0]]), (("7,4", F32), ("b", "small"), ("b,4", F32))),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 4), (("b,3", F32), ("b", "small"))),
    "one_hot": (lambda i: nn.one_hot(i, 5), (("b", "small"),)),
    "sort": (lambda x: jnp.sort(x, 0), (("b,3", F32),)),
    "argsort": (lambda x: jnp.argsort(x), (("b", "small"),)),
    "cumsum": (lambda x: jnp.cumsum(x, 0), (("b,3", F32),)),
    "cumprod_cummax": (lambda x: (jnp.cumprod(x, 0), lax.cummax(x, 0)), (("b,3", F32),)),
    "argmax": (lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1)), (("b,5", F32),)),
    "top_k": (lambda x: lax.top_k(x, 3), (("b,6", F32),)),
    "top_1_of_batch": (lambda x: lax.top_k(x.T, 1), (("b,4", F32),)),
    "iota": (lambda x: x * jnp.arange(x.shape[0])[:, None] + jnp.eye(x.shape[0], 3), (("b,3", F32),)),
    "clip_where": (lambda x: jnp.where(x > 0, jnp.clip(x, 0.2, 1.0), -x), (("b,4", F32),)),
    "special_functions": (lambda x: (lax.erf(x), jnp.log1p(x**2), nn.gelu(x)), (("b,4", F32),)),
    "bfloat16": (lambda x: jnp.tanh(x) * x, (("b,6", "bfloat16"),)),
    "int8": (lambda x: (x + x, (x > 3).sum(0), x.astype(jnp.int32).sum()), (("b,3", "int8"),)),
    "bool": (lambda x: (x, ~x, jnp.logical_and(x[:, 0], x[:, 1])), (("b,3", "bool"),)),
    "complex": (lambda x: (x * jnp.conj(x)).real + jnp.abs(x), (("b,3", "complex64"),)),
    "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), (("b,8", F32),)),
    "cholesky": (lambda x: lax.linalg.cholesky(jnp.einsum("bij,bkj->bik", x, x) + jnp.eye(3)), (("b,3,3", F32),)),
    "random": (
        lambda key, x: x + jax.random.uniform(jax.random.wrap_key_data(key), x.shape),
        (("2", "key"), ("b,3", F32)),
    ),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x), (("b,3", F32),)),
    "vmap_grad": (lambda x: jax.vmap(jax.grad(lambda v: jnp.sin(v).sum() ** 2))(x), (("b,3", F32),)),
    "two_lengths": (lambda x, y: jnp.concatenate([x.sum(0), y.mean(0)]), (("b,3", F32), ("c,2", F32))),
    "merged": (lambda x: x.reshape(-1, 3, 3).sum(1), (("3*b,3", F32),)),
}
"""By name: a function and its arguments."""


def arguments_of(specs: Sequence[Spec], size: int) -> list[Array]:
    """Arguments of a call, by the value of ``b``; ``c`` is one more."""
    rng = np.random.default_rng(size)
    found = []
    for text, kind in specs:
        shape = tuple(int(eval(part, {"b": size, "c": size + 1})) for part in text.split(","))
        if kind == "index":
            found.append(rng.integers(0, size, shape).astype(np.int32))
        elif kind == "small":
            found.append(rng.integers(0, 4, shape).astype(np.int32))
        elif kind == "key":
            found.append(np.array([1, 2], np.uint32))
        elif kind == "positive":
            found.append((rng.random(shape) + 0.5).astype(np.float32))
        elif kind == "complex64":
            found.append((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64))
        elif kind in ("bool", "int8"):
            found.append(rng.integers(0, 2 if kind == "bool" else 5, shape).astype(kind))
        else:
            found.append(rng.normal(size=shape).astype(np.dtype(jnp.dtype(kind))))
    return found


def exported(function: Callable[..., Any], specs: Sequence[Spec]) -> str:
    """The StableHLO that ``jax.export`` makes of a function with a symbolic batch."""
    scope = jax.export.SymbolicScope()
    dtypes = {"index": "int32", "small": "int32", "key": "uint32", "positive": "float32"}
    shapes = [
        jax.ShapeDtypeStruct(jax.export.symbolic_shape(text, scope=scope), dtypes.get(kind, kind))
        for text, kind in specs
    ]
    return str(jax.export.export(jax.jit(function), platforms=["tpu"])(*shapes).mlir_module())
