"""Functions of JAX to compile: jax.numpy, jax.lax, jax.nn, gradients, loops, random numbers, layers and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax, nn

Array: TypeAlias = npt.NDArray[Any]
Case: TypeAlias = tuple[Callable[..., Any], Sequence[Array]]

NHWC = ("NHWC", "HWIO", "NHWC")


def values(*shape: int) -> Array:
    """Normal numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(np.float32)


def positive(*shape: int) -> Array:
    """Numbers of at least 0.1."""
    return np.abs(values(*shape)) + np.float32(0.1)


def integers(*items: int) -> Array:
    """32-bit integers."""
    return np.array(items, np.int32)


KEY = np.array([1, 2], np.uint32)


def _with_key(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, *rest: function(jax.random.wrap_key_data(data), *rest)


def _lstm(xs: Any, wi: Any, wh: Any, bias: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        hidden, cell = carry
        i, f, g, o = jnp.split(x @ wi + hidden @ wh + bias, 4, -1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(g)
        hidden = nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    return lax.scan(step, (jnp.zeros((2, 6)), jnp.zeros((2, 6))), xs)


def _normalized(h: Any) -> Any:
    return (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) + 1e-5)


def _transformer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    def heads(a: Any) -> Any:
        return a.reshape(a.shape[0], 2, -1).transpose(1, 0, 2)

    h = _normalized(x)
    q, k, v = heads(h @ wq), heads(h @ wk), heads(h @ wv)
    mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
    attention = nn.softmax(jnp.where(mask, q @ k.transpose(0, 2, 1) / 2, -1e9), -1) @ v
    x = x + attention.transpose(1, 0, 2).reshape(x.shape) @ wo
    return x + nn.gelu(_normalized(x) @ w1) @ w2


def _cnn(x: Any, w1: Any, w2: Any, dense: Any) -> Any:
    h = nn.relu(lax.conv(nn.relu(lax.conv(x, w1, (1, 1), "SAME")), w2, (2, 2), "SAME"))
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return nn.log_softmax(h.reshape(1, -1) @ dense)


def _unet_step(x: Any, t: Any, noise: Any, down: Any, middle: Any, up: Any, out: Any, embed: Any) -> Any:
    """A step of a diffusion model's sampling: a U-Net of one level guesses the noise, and some of it is taken away."""

    def conv(a: Any, w: Any, stride: int = 1) -> Any:
        return lax.conv_general_dilated(a, w, (stride, stride), "SAME", dimension_numbers=NHWC)

    angles = t * jnp.exp(-jnp.arange(4) / 4.0)
    embedded = nn.silu(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)]) @ embed)
    high = nn.silu(_normalized(conv(x, down)) + embedded)
    low = nn.silu(_normalized(conv(high, middle, 2)) + embedded)
    flat = low.reshape(low.shape[0], -1, low.shape[-1])
    low = (flat + nn.softmax(flat @ flat.transpose(0, 2, 1) / 2, -1) @ flat).reshape(low.shape)
    back = nn.silu(_normalized(lax.conv_transpose(low, up, (2, 2), "SAME", dimension_numbers=NHWC)))
    guess = conv(jnp.concatenate([high, back], -1), out)
    alpha, beta = jnp.cos(t * 0.1) ** 2, 0.02
    return (x - beta / jnp.sqrt(1 - alpha + 1e-3) * guess) / jnp.sqrt(1 - beta) + jnp.sqrt(beta) * noise


def _pooled(start: float, combine: Any) -> Callable[[Any], Any]:
    return lambda x: lax.reduce_window(x, start, combine, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def _squared_sum(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: (function(x) ** 2).sum()


_WEIGHTS = (
    values(6, 8),
    values(8, 8),
    values(8, 8) * np.float32(0.5),
    values(8, 8) * np.float32(0.3),
    values(8, 8) * np.float32(0.2),
    values(8, 32),
    values(32, 8) * np.float32(0.1),
)

LAYERS: Mapping[str, Case] = {
    "mlp": (lambda x, w, b: nn.relu(x @ w + b), (values(4, 8), values(8, 3), values(3))),
    "softmax": (lambda x: nn.softmax(x, -1), (values(4, 10),)),
    "logsumexp": (lambda x: jax.scipy.special.logsumexp(x, axis=1), (values(4, 10),)),
    "layer_norm": (_normalized, (values(3, 16),)),
    "gelu": (nn.gelu, (values(5, 7),)),
    "gelu_exact": (lambda x: nn.gelu(x, approximate=False), (values(5, 7),)),
    "silu": (nn.silu, (values(5, 7),)),
    "softplus": (nn.softplus, (values(5, 7),)),
    "one_hot": (lambda i: nn.one_hot(i, 5), (integers(0, 3, 4),)),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC),
        (values(1, 8, 8, 3), values(3, 3, 3, 4)),
    ),
    "depthwise": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=3),
        (values(1, 8, 8, 3), values(3, 3, 1, 3)),
    ),
    "transposed_convolution": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        (values(1, 4, 4, 3), values(3, 3, 3, 2)),
    ),
    "max_pool": (_pooled(-np.inf, lax.max), (values(1, 8, 8, 3),)),
    "max_pool_gradient": (jax.grad(_squared_sum(_pooled(-np.inf, lax.max))), (values(1, 8, 8, 3),)),
    "mean_pool_gradient": (jax.grad(_squared_sum(_pooled(0.0, lax.add))), (values(1, 8, 8, 3),)),
    "attention": (
        lambda q, k, v: jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 4), v),
        (values(2, 5, 2, 8), values(2, 5, 2, 8), values(2, 5, 2, 8)),
    ),
    "lstm": (_lstm, (values(7, 2, 5), values(5, 24), values(6, 24), values(24))),
    "cnn": (_cnn, (values(1, 1, 12, 12), values(4, 1, 3, 3), values(6, 4, 3, 3), values(54, 5) * np.float32(0.1))),
    "transformer": (_transformer, _WEIGHTS),
    "transformer_gradient": (jax.grad(lambda *a: (_transformer(*a) ** 2).mean(), argnums=(1, 5)), _WEIGHTS),
    "unet_step": (
        _unet_step,
        (
            values(1, 8, 8, 2),
            np.array(3.0, np.float32),
            values(1, 8, 8, 2) * np.float32(0.5),
            values(3, 3, 2, 4),
            values(3, 3, 4, 4),
            values(3, 3, 4, 4) * np.float32(0.5),
            values(3, 3, 8, 2),
            values(8, 4),
        ),
    ),
    "mlp_gradient": (
        jax.grad(lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)),
        (values(8, 3), values(4, 8), values(4, 3)),
    ),
}
LOOPS: Mapping[str, Case] = {
    "scan": (
        lambda x, w: lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=5),
        (values(4, 4), values(4, 4)),
    ),
    "fori_loop": (lambda x: lax.fori_loop(0, 10, lambda i, c: c * 1.1 + i, x), (values(4),)),
    "while_loop": (lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2, x), (positive(4),)),
    "cond": (lambda p, x: lax.cond(p, lambda v: v * 2, lambda v: v - 1, x), (np.array(True), values(4))),
    "switch": (lambda i, x: lax.switch(i, [lambda v: v, lambda v: v * 2, jnp.sin], x), (np.array(2, "i4"), values(4))),
    "vmap": (jax.vmap(lambda a, b: a @ b), (values(3, 4, 5), values(3, 5, 2))),
    "jacobian": (jax.jacfwd(lambda x: jnp.sin(x) * x.sum()), (values(4),)),
    "hessian": (jax.hessian(lambda x: (x**3).sum()), (values(3),)),
}
ARRAYS: Mapping[str, Case] = {
    "cumsum": (lambda x: jnp.cumsum(x, 1), (values(3, 9),)),
    "cumprod": (lambda x: jnp.cumprod(x, 0), (values(3, 9),)),
    "cummax": (lambda x: lax.cummax(x, 1), (values(3, 9),)),
    "sort": (lambda x: jnp.sort(x, -1), (values(4, 13),)),
    "argsort": (lambda x: jnp.argsort(x, -1), (values(4, 13),)),
    "top_k": (lambda x: lax.top_k(x, 3), (values(4, 13),)),
    "argmax": (lambda x: jnp.argmax(x, 1), (values(4, 13),)),
    "median": (lambda x: jnp.median(x, 1), (values(4, 13),)),
    "bincount": (lambda x: jnp.bincount(x, length=6), (integers(0, 1, 1, 5, 2, 5, 5),)),
    "take": (lambda x, i: jnp.take(x, i, axis=1), (values(4, 6), np.array([[0, 3], [5, 1]], np.int32))),
    "scatter_add": (lambda x, i, u: x.at[i].add(u), (values(6, 3), integers(0, 2, 2), values(3, 3))),
    "scatter_set": (lambda x, i: x.at[:, i].set(1.5), (values(4, 6), integers(0, 5))),
    "where": (lambda x: jnp.where(x > 0, x, -x), (values(5, 5),)),
    "roll": (lambda x: jnp.roll(x, 2, 1), (values(3, 7),)),
    "flip": (lambda x: jnp.flip(x, 0), (values(3, 7),)),
    "reflect_pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3)), mode="reflect"), (values(4, 5),)),
    "fft": (jnp.fft.fft, (values(4, 16),)),
    "rfft2": (jnp.fft.rfft2, (values(4, 12),)),
    "irfft": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), (values(3, 20),)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(5)), (values(5, 5),)),
    "solve_triangular": (
        lambda a, b: jax.scipy.linalg.solve_triangular(jnp.tril(a) + 3 * jnp.eye(5), b, lower=True),
        (values(5, 5), values(5, 2)),
    ),
    "determinant": (jnp.linalg.det, (values(3, 3),)),
    "norm": (lambda a: jnp.linalg.norm(a, axis=1), (values(4, 6),)),
    "uniform": (_with_key(lambda key: jax.random.uniform(key, (3, 4))), (KEY,)),
    "normal": (_with_key(lambda key: jax.random.normal(key, (3, 4))), (KEY,)),
    "permutation": (_with_key(lambda key: jax.random.permutation(key, 10)), (KEY,)),
    "categorical": (_with_key(jax.random.categorical), (KEY, values(3, 4))),
    "dropout": (
        _with_key(lambda key, x: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0)),
        (KEY, values(4, 4)),
    ),
    "booleans": (lambda a, b: (a & b, a | ~b, a ^ b), (np.arange(7) % 2 == 0, np.arange(7) % 3 == 0)),
}
_UNARY = [
    "sin", "cos", "tan", "exp", "log1p", "expm1", "tanh", "arctan", "arcsinh", "sinh", "cosh", "sqrt", "cbrt",
    "square", "reciprocal", "sign", "floor", "ceil", "round", "trunc", "isnan",
]  # fmt: skip
_BINARY = [
    "add", "subtract", "multiply", "divide", "power", "arctan2", "maximum", "minimum", "fmod", "hypot",
    "logaddexp", "greater", "equal", "floor_divide", "remainder", "copysign", "nextafter", "heaviside",
]  # fmt: skip
_INTEGERS = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "floor_divide", "remainder", "gcd",
    "lcm",
]  # fmt: skip
_REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmin", "ptp", "nansum"]
_SPECIAL = ["erf", "erfc", "erfinv", "gammaln", "digamma", "i0e", "i1e"]
_DTYPES = ["float16", "bfloat16", "int8", "uint8", "int16", "uint16", "uint32"]


def _reduction(name: str) -> Callable[[Any], Any]:
    return lambda x: getattr(jnp, name)(x, axis=1)


def _in_dtype(dtype: str) -> Callable[[Any], Any]:
    return lambda x: ((x.astype(dtype) * 2 + 1) @ x.T.astype(dtype)).astype("float32")


FUNCTIONS: Mapping[str, Case] = {
    **LAYERS,
    **LOOPS,
    **ARRAYS,
    **{name: (getattr(jnp, name), (positive(6, 5),)) for name in _UNARY},
    **{f"{name}_of_floats": (getattr(jnp, name), (positive(6, 5), positive(5))) for name in _BINARY},
    **{
        f"{name}_of_integers": (getattr(jnp, name), (np.arange(1, 13, dtype=np.int32), integers(*[1, 2, 3] * 4)))
        for name in _INTEGERS
    },
    **{f"{name}_of_rows": (_reduction(name), (values(4, 7),)) for name in _REDUCTIONS},
    **{name: (getattr(jax.scipy.special, name), (np.clip(positive(5, 5), 0.1, 0.9),)) for name in _SPECIAL},
    **{f"products_in_{dtype}": (_in_dtype(dtype), (np.round(values(4, 5) * 3),)) for dtype in _DTYPES},
}
