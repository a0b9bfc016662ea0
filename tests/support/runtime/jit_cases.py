"""Functions of JAX for ``pumice.jit``: what a call of it has that a compiled module has not.

Trees of arguments and results, static arguments, keywords, closures, weak types, random keys, gradients, training
steps, loops, and what programs that people write are made of. The operations one by one are in ``tests/conformance``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax, nn

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Case:
    """A function, one call of it, and the options of ``jit`` for it."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {}


def case(*arguments: Any, keywords: Mapping[str, Any] | None = None, **options: Any) -> Callable[[Function], Function]:
    """Registers the function that follows, under its name."""

    def register(function: Function) -> Function:
        CASES[function.__name__] = Case(function, arguments, keywords or {}, options)
        return function

    return register


def values(*shape: int, dtype: str = "float32") -> npt.NDArray[Any]:
    """Normal numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape) + 1).normal(size=shape).astype(jnp.dtype(dtype))


def whole(*shape: int, below: int = 10, dtype: str = "int32") -> npt.NDArray[Any]:
    """Whole numbers from 0, the same for the same shape."""
    return np.random.default_rng(sum(shape) + 2).integers(0, below, shape).astype(dtype)


X = values(4, 6)
KEY = np.array([0, 42], np.uint32)

# -- signatures and trees ----------------------------------------------------------------------------


class State(NamedTuple):
    position: Any
    velocity: Any


@jax.tree_util.register_dataclass
@dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = field(metadata={"static": True}, default="layer")


@case({"w": values(6, 3), "b": values(3)}, X)
def dictionary_of_parameters(parameters: Any, x: Any) -> Any:
    return {"out": x @ parameters["w"] + parameters["b"], "norm": jnp.linalg.norm(parameters["w"])}


@case((X, [values(3), {"z": values(2), "a": values(1)}]))
def nested_trees(tree: Any) -> Any:
    x, (y, named) = tree
    return [(x.sum(), {"deep": [y * 2, (named["z"],)]}), named["a"] + named["z"]]


@case(State(values(3), values(3)), 0.1)
def named_tuples(state: State, dt: float) -> State:
    return State(state.position + dt * state.velocity, state.velocity - dt * state.position)


@case(Layer(values(6, 2), values(2), "first"), X)
def registered_dataclasses(layer: Layer, x: Any) -> Any:
    return Layer(layer.weight * 0.9, layer.bias + (x @ layer.weight).mean(0), layer.name + "'")


@case({"w": X, "mask": None}, None)
def none_in_trees(parameters: Any, mask: Any) -> Any:
    return {"w": parameters["w"] * 2, "mask": parameters["mask"], "other": (mask, None)}


@case(X)
def nothing_returned(x: Any) -> None:
    x + 1


@case(X)
def empty_trees_returned(x: Any) -> Any:
    return (), {}, [x[0]], [[]]


@case(X, values(3))
def arguments_returned(x: Any, y: Any) -> Any:
    return y, x, y


@case({"count": 3, "x": X})
def arguments_returned_in_trees(tree: Any) -> Any:
    return tree, tree["count"] + 1


@case()
def no_arguments() -> Any:
    return jnp.arange(6).reshape(2, 3) * 2


@case(X)
def constants_returned(x: Any) -> Any:
    return 3.5, 7, True, np.arange(4), jnp.zeros((2, 2)), x[0, 0]


@case(X, values(9), values(2))
def unused_arguments(x: Any, y: Any, z: Any) -> Any:
    return x + 1


@case(X, keywords={"scale": 3.0, "shift": values(6)})
def keywords_given(x: Any, *, scale: Any, shift: Any = 0.0) -> Any:
    return x * scale + shift


@case(X)
def defaults_taken(x: Any, scale: Any = 2.0, shift: Any = None) -> Any:
    return x * scale if shift is None else x + shift


@case(values(3), values(3, 3), keywords={"left": values(3), "right": 2})
def variadic(*arrays: Any, **named: Any) -> Any:
    return {name: value + sum(a.sum() for a in arrays) for name, value in named.items()}


@case(X, 3, static_argnums=1)
def static_count(x: Any, times: int) -> Any:
    for _ in range(times):
        x = jnp.sin(x)
    return x


@case(X, keywords={"mode": "mean", "axes": (0,)}, static_argnames=("mode", "axes"))
def static_names(x: Any, *, mode: str, axes: tuple[int, ...]) -> Any:
    return {"mean": jnp.mean, "sum": jnp.sum}[mode](x, axes)


@case(nn.silu, X, static_argnums=0)
def static_function(activation: Callable[[Any], Any], x: Any) -> Any:
    return activation(x)


_TABLE, _OFFSETS = values(4), jnp.arange(6.0)


@case(X)
def closures_over_arrays(x: Any) -> Any:
    return x * _TABLE[:, None] + _OFFSETS


class Scaler:
    """A callable object with a method."""

    factor = 2.5

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def shifted(self, x: Any) -> Any:
        return x * self.factor + 1


def _weighted(weight: Any, x: Any, *, power: int) -> Any:
    return weight * x**power


CASES["callable_objects"] = Case(Scaler(), (X,))
CASES["bound_methods"] = Case(Scaler().shifted, (X,))
CASES["partial_functions"] = Case(functools.partial(_weighted, 2.0, power=3), (X,))

# -- element types -----------------------------------------------------------------------------------


@case(values(5, dtype="float16"), 2.0, 3)
def weak_scalars(x: Any, scale: Any, shift: Any) -> Any:
    return x * scale + shift, scale * 2, shift * 2, scale + shift


@case(whole(5), 1.5, True, 2j)
def weak_promotion(x: Any, real: Any, flag: Any, imaginary: Any) -> Any:
    return x * real, x + flag, x * imaginary, flag + flag


@case(np.float32(2.5), np.int32(4), np.bool_(True), np.float16(1.5))
def numpy_scalars(x: Any, n: Any, flag: Any, half: Any) -> Any:
    return jnp.where(flag, x**n, half), half * n


@case(values(4, 8, dtype="float16"))
def halves(x: Any) -> Any:
    return nn.softmax(x), x.sum(), jnp.exp(x).astype(jnp.float32)


@case(values(4, 8, dtype="bfloat16"), values(8, 3, dtype="bfloat16"))
def brain_floats(x: Any, w: Any) -> Any:
    return nn.gelu(x @ w), (x @ w).mean(-1)


@case(whole(7, below=128, dtype="int8"), whole(7, below=256, dtype="uint8"))
def small_integers(a: Any, b: Any) -> Any:
    return a * 3, b + b, a.astype(jnp.int32) * b, (b >> 2) & 3


@case(np.array([1, 2, 0xFFFFFFFF], np.uint32))
def bits(state: Any) -> Any:
    state ^= state << 13
    state ^= state >> 17
    state ^= state << 5
    return state, lax.population_count(state), lax.bitcast_convert_type(state, jnp.int32)


@case(whole(4, 5, below=2, dtype="bool"), whole(5, 4, below=2, dtype="bool"))
def booleans(a: Any, b: Any) -> Any:
    return a.any(1) & ~b.all(0), a ^ b.T, a.sum(), jnp.logical_xor(a, True)


@case((values(6) + 1j * values(6)).astype(np.complex64))
def complex_numbers(z: Any) -> Any:
    return {"square": z * z.conj(), "polar": (jnp.abs(z), jnp.angle(z)), "exp": jnp.exp(1j * z.real), "parts": z.imag}


@case(np.zeros((0, 3), np.float32), X)
def arrays_without_elements(none: Any, x: Any) -> Any:
    return none * 2, none.sum(0), jnp.concatenate([none, x[:, :3]]), x[2:2]


@case(np.array(3.0, np.float32), np.array(4, np.int32))
def arrays_without_dimensions(x: Any, n: Any) -> Any:
    return x * n, jnp.full((n.ndim + 2,), x), x.reshape(1, 1)


@case(whole(8, 8, 3, below=256, dtype="uint8"))
def picture(pixels: Any) -> Any:
    gray = pixels.astype(jnp.float32) @ jnp.array([0.299, 0.587, 0.114])
    return jnp.clip(jnp.round(gray), 0, 255).astype(jnp.uint8), (pixels[::2, ::2] > 127).mean()


# -- loops and branches ------------------------------------------------------------------------------


@case(np.int32(27))
def collatz(n: Any) -> Any:
    def step(state: Any) -> Any:
        n, count = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))


@case(np.float32(2.0))
def newton(a: Any) -> Any:
    def step(state: Any) -> Any:
        x, _ = state
        better = 0.5 * (x + a / x)
        return better, jnp.abs(better - x)

    return lax.while_loop(lambda state: state[1] > 1e-4, step, (a, jnp.float32(1.0)))[0]


@case({"h": values(3), "total": np.float32(0)}, values(5, 3))
def scan_of_trees(carry: Any, xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        h = jnp.tanh(carry["h"] + x)
        return {"h": h, "total": carry["total"] + h.sum()}, {"h": h, "x2": x * 2}

    return lax.scan(step, carry, xs)


@case(np.int32(6), values(3))
def bound_by_an_argument(n: Any, x: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, c: c + i * x, jnp.zeros(3))


@case(np.int32(1), {"a": X, "b": X * 2})
def branches_on_trees(which: Any, tree: Any) -> Any:
    double = lax.cond(tree["a"].sum() > 0, lambda t: {**t, "a": t["b"]}, lambda t: {**t, "b": t["a"]}, tree)
    return double, lax.switch(which, [jnp.sin, jnp.cos, jnp.tanh], tree["a"])


@case(values(3, 4, 2), values(2, 2))
def scan_in_a_scan(sequences: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ w + x)
        return h, h[0]

    return lax.scan(lambda total, xs: (total + 1, lax.scan(step, jnp.zeros(2), xs)), 0, sequences)


@case(values(8, 2))
def associative_scan(x: Any) -> Any:
    return lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (jnp.abs(x), x))


@case(values(4, 3, 3))
def map_over_rows(matrices: Any) -> Any:
    return lax.map(lambda m: {"trace": jnp.trace(m), "row": m[0] / jnp.linalg.norm(m[0])}, matrices)


@case(X)
def jit_in_jit(x: Any) -> Any:
    inner = jax.jit(lambda a, n: a * n, static_argnums=1)
    return inner(x, 2) + inner(x, 3) + jax.jit(jnp.sin)(inner(x, 2))


# -- transformations and gradients -------------------------------------------------------------------


def _loss(parameters: Any, x: Any, y: Any) -> Any:
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x @ parameters[-1]["w"] + parameters[-1]["b"] - y) ** 2)


def _parameters(*widths: int) -> Any:
    return [{"w": values(a, b) * np.float32(0.4), "b": np.zeros(b, np.float32)} for a, b in itertools.pairwise(widths)]


_NET, _DATA = _parameters(6, 8, 2), (X, values(4, 2))


@case(_NET, *_DATA)
def value_and_gradient(parameters: Any, x: Any, y: Any) -> Any:
    return jax.value_and_grad(_loss)(parameters, x, y)


@case(_NET, *_DATA)
def gradient_for_each_example(parameters: Any, x: Any, y: Any) -> Any:
    return jax.vmap(jax.grad(_loss), (None, 0, 0))(parameters, x[:, None], y[:, None])


@case(values(3), values(3))
def jacobians_and_products(x: Any, v: Any) -> Any:
    def f(x: Any) -> Any:
        return jnp.sin(x) * x.prod()

    pulled = jax.vjp(f, x)[1](v)
    return jax.jvp(f, (x,), (v,)), pulled, jax.jacrev(f)(x), jax.jvp(jax.grad(lambda x: f(x).sum()), (x,), (v,))[1]


@case(X)
def rematerialized(x: Any) -> Any:
    return jax.grad(lambda x: jax.checkpoint(lambda a: jnp.sin(jnp.exp(a)))(x).sum())(x)


@jax.custom_vjp
def _clipped(x: Any) -> Any:
    return x * 1.0


_clipped.defvjp(lambda x: (_clipped(x), None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))


@case(X)
def custom_gradient(x: Any) -> Any:
    return jax.grad(lambda x: (_clipped(x) ** 2).sum())(x)


@case(values(3, 4), values(5, 4))
def vmap_of_vmap(a: Any, b: Any) -> Any:
    return jax.vmap(lambda p: jax.vmap(lambda q: {"dot": p @ q, "far": jnp.abs(p - q).max()})(b))(a)


def _sgd(parameters: Any, gradients: Any, rate: float) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients)


@case(_NET, *_DATA, 0.1, donate_argnums=0)
def gradient_descent(parameters: Any, x: Any, y: Any, rate: Any) -> Any:
    loss, gradients = jax.value_and_grad(_loss)(parameters, x, y)
    return _sgd(parameters, gradients, rate), loss


_ZEROS = jax.tree.map(np.zeros_like, _NET)


@case(_NET, {"m": _ZEROS, "v": _ZEROS, "step": np.int32(0)}, *_DATA, donate_argnums=(0, 1))
def adam(parameters: Any, state: Any, x: Any, y: Any) -> Any:
    loss, g = jax.value_and_grad(_loss)(parameters, x, y)
    step = state["step"] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, state["v"], g)

    def updated(p: Any, m: Any, v: Any) -> Any:
        return p - 1e-2 * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)

    return jax.tree.map(updated, parameters, m, v), {"m": m, "v": v, "step": step}, loss


@case(_NET, jax.tree.map(np.ones_like, _NET), *_DATA, donate_argnames=("parameters", "momentum"))
def momentum(parameters: Any, momentum: Any, x: Any, y: Any) -> Any:
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, jax.grad(_loss)(parameters, x, y))
    return _sgd(parameters, momentum, 0.05), momentum


@case(_NET, values(3, 4, 6), values(3, 4, 2))
def steps_in_a_scan(parameters: Any, xs: Any, ys: Any) -> Any:
    def step(parameters: Any, batch: Any) -> Any:
        loss, gradients = jax.value_and_grad(_loss)(parameters, *batch)
        return _sgd(parameters, gradients, 0.1), loss

    return lax.scan(step, parameters, (xs, ys))


_CNN = {"conv": values(3, 3, 1, 4) * np.float32(0.3), "dense": values(64, 10) * np.float32(0.1)}


@case(_CNN, values(2, 8, 8, 1), whole(2), donate_argnums=0)
def convolutional_step(parameters: Any, pictures: Any, labels: Any) -> Any:
    def loss(parameters: Any) -> Any:
        maps = lax.conv_general_dilated(
            pictures, parameters["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        pooled = lax.reduce_window(nn.relu(maps), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        odds = nn.log_softmax(pooled.reshape(2, -1) @ parameters["dense"])
        return -jnp.take_along_axis(odds, labels[:, None], 1).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    return _sgd(parameters, gradients, 0.1), value


_LSTM = {"wi": values(5, 24) * np.float32(0.3), "wh": values(6, 24) * np.float32(0.3), "b": values(24)}


@case(_LSTM, values(7, 2, 5), donate_argnums=0)
def recurrent_step(parameters: Any, xs: Any) -> Any:
    def loss(parameters: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ parameters["wi"] + h @ parameters["wh"] + parameters["b"], 4, -1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            return (nn.sigmoid(o) * jnp.tanh(c), c), None

        (h, _), _ = lax.scan(step, (jnp.zeros((2, 6)), jnp.zeros((2, 6))), xs)
        return (h**2).sum()

    value, gradients = jax.value_and_grad(loss)(parameters)
    return _sgd(parameters, gradients, 0.1), value


_BLOCK = {
    name: values(8, width) * np.float32(0.4) for name, width in {"q": 8, "k": 8, "v": 8, "o": 8, "up": 32}.items()
}
_BLOCK["down"] = values(32, 8) * np.float32(0.2)


@case(_BLOCK, values(11, 8), whole(2, 6), donate_argnums=0)
def transformer_step(parameters: Any, embedding: Any, tokens: Any) -> Any:
    def normalized(h: Any) -> Any:
        return (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) + 1e-5)

    def heads(h: Any) -> Any:
        return h.reshape(*h.shape[:2], 2, 4)

    def loss(p: Any) -> Any:
        x = embedding[tokens]
        h = normalized(x)
        scores = jnp.einsum("bqhd,bkhd->bhqk", heads(h @ p["q"]), heads(h @ p["k"])) / 2
        scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), heads(h @ p["v"]))
        x = x + mixed.reshape(x.shape) @ p["o"]
        x = x + nn.gelu(normalized(x) @ p["up"]) @ p["down"]
        odds = nn.log_softmax(x[:, :-1] @ embedding.T)
        return -(odds * nn.one_hot(tokens[:, 1:], 11)).sum(-1).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    return _sgd(parameters, gradients, 0.1), value


# -- random numbers ----------------------------------------------------------------------------------


@case(KEY)
def random_keys(key: Any) -> Any:
    key, one, other = jax.random.split(key, 3)
    return key, jax.random.normal(one, (3, 2)), jax.random.uniform(other, (4,), minval=-1)


@case(KEY)
def random_kinds(key: Any) -> Any:
    keys = jax.random.split(key, 5)
    return {
        "whole": jax.random.randint(keys[0], (5,), 0, 100),
        "shuffled": jax.random.permutation(keys[1], 8),
        "coins": jax.random.bernoulli(keys[2], 0.3, (8,)),
        "truncated": jax.random.truncated_normal(keys[3], -1.0, 1.0, (4,)),
        "class": jax.random.categorical(keys[4], jnp.array([0.1, 2.0, 0.3])),
    }


@case(KEY)
def random_walks(key: Any) -> Any:
    def walk(key: Any) -> Any:
        return jnp.cumsum(jax.random.normal(key, (6,)))

    return jax.vmap(walk)(jax.random.split(key, 4))


@case(KEY, X)
def dropout(key: Any, x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(jax.random.fold_in(key, 7), 0.5, x.shape), x * 2, 0)


@case(42)
def key_from_a_seed(seed: Any) -> Any:
    key = jax.random.key(seed)
    return jax.random.normal(key, (3,)), jax.random.key_data(jax.random.split(key))


# -- what programs are made of -----------------------------------------------------------------------


@case(values(9), values(2), np.int32(3))
def dynamic_slices(x: Any, part: Any, at: Any) -> Any:
    return lax.dynamic_slice(x, (at,), (4,)), lax.dynamic_update_slice(x, part, (at * 9,)), x[at], x.at[at].mul(2)


@case(values(8, 3), whole(8, below=4))
def segments(data: Any, ids: Any) -> Any:
    return jax.ops.segment_sum(data, ids, 4), jax.ops.segment_max(data, ids, 4), jnp.bincount(ids, length=4)


@case(whole(6, 7, below=2))
def game_of_life(board: Any) -> Any:
    near = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((near == 3) | ((near == 2) & (board == 1))).astype(board.dtype)


@case(values(10, 2), values(3, 2))
def k_means(points: Any, centres: Any) -> Any:
    nearest = ((points[:, None] - centres) ** 2).sum(-1).argmin(1)
    weights = nn.one_hot(nearest, 3)
    return nearest, weights.T @ points / jnp.maximum(weights.sum(0), 1)[:, None]


@case(values(5, 3), np.float32(0.01))
def bodies(position: Any, dt: Any) -> Any:
    apart = position[:, None] - position
    far = jnp.sqrt((apart**2).sum(-1) + 1e-2)
    pull = -(apart / far[..., None] ** 3).sum(1)
    return position + dt * pull, jnp.cross(position, pull), 0.5 * (pull**2).sum()


@case(values(4, 4), whole(4, below=4))
def updates_at_indices(x: Any, at: Any) -> Any:
    return x.at[at].add(1.0), x.at[:, 1].set(0), x.at[at, at].max(0.5), jnp.where(jnp.eye(4, dtype=bool), 0, x)
