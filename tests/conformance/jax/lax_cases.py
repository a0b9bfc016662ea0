"""Calls of the public functions of jax.lax and jax.nn, one or more of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from conformance.jax.numpy_cases import (
    Case,
    called,
    complexes,
    each,
    integers,
    positive,
    truths,
    unit,
    values,
    whole,
    words,
)
from jax import lax, nn

_X: Final = values(4, 5)
_P: Final = positive(4, 5)
_U: Final = unit(4, 5)
_N: Final = whole(4, 5)
_V: Final = values(7)
_IMAGE: Final = values(1, 8, 8, 3)
_NHWC: Final = ("NHWC", "HWIO", "NHWC")


def _pool(x: Any, start: float, combine: Any) -> Any:
    return lax.reduce_window(x, start, combine, (1, 3, 2, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (0, 1), (0, 0)))


def _scatter(name: str) -> Any:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return lambda x, i, u: getattr(lax, name)(x, i[:, None], u, numbers)


LAX: Final[Mapping[str, Case]] = {
    **each("lax", lax, "abs asinh bessel_i0e bessel_i1e cbrt ceil cos cosh erf erfc exp exp2 expm1 floor", _X),
    **each("lax", lax, "is_finite logistic neg round sign sin sinh square tan tanh stop_gradient", _X),
    "lax.dtype": (lambda x: x.astype(lax.dtype(x)), (_X,)),
    **each("lax", lax, "digamma lgamma log log1p reciprocal rsqrt sqrt", _P),
    **each("lax", lax, "acos asin atanh erf_inv", _U),
    **each("lax", lax, "acosh", _P + np.float32(1)),
    **each("lax", lax, "atan", _X),
    **each("lax", lax, "add sub mul div rem max min atan2 nextafter complex eq ne lt le gt ge", _X, _P),
    **each("lax", lax, "pow", _P, _X),
    **each("lax", lax, "igamma igammac igamma_grad_a random_gamma_grad", _P, positive(4, 5) * np.float32(1.5)),
    **each("lax", lax, "zeta", _P + np.float32(1.5), _P),
    "lax.polygamma": (lax.polygamma, (np.floor(_P) + np.float32(1), _P + np.float32(0.5))),
    "lax.betainc": (lax.betainc, (_P, _P + np.float32(0.5), np.abs(_U))),
    **each("lax", lax, "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic", _N, whole(4, 5)),
    **each("lax", lax, "shift_right_logical mulhi", _N, whole(4, 5)),
    **each("lax", lax, "bitwise_not clz population_count", _N),
    **each("lax", lax, "conj real imag", complexes(3, 4)),
    "lax.integer_pow": (lambda x: lax.integer_pow(x, -3), (_P,)),
    "lax.clamp": (lambda x: lax.clamp(-0.5, x, 0.5), (_X,)),
    "lax.select": (lax.select, (truths(4, 5), _X, _P)),
    "lax.select_n": (lax.select_n, (whole(4, 5) % 3, _X, _P, _X * 2)),
    "lax.convert_element_type": (lambda x: lax.convert_element_type(x * 100, jnp.int8), (_X,)),
    "lax.bitcast_convert_type": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), (_X,)),
    "lax.reduce_precision": (lambda x: lax.reduce_precision(x, 5, 7), (_X,)),
    "lax.broadcast": (lambda x: lax.broadcast(x, (2, 3)), (_X,)),
    "lax.broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (4, 2, 5), (0, 2)), (_X,)),
    "lax.broadcast_like": (lambda x, y: lax.broadcast_like(x, y), (np.float32(2), _X)),
    "lax.broadcast_to_rank": (lambda x: lax.broadcast_to_rank(x, 4), (_X,)),
    "lax.broadcasted_iota": (lambda x: lax.broadcasted_iota(jnp.float32, (4, 5), 1) + x, (_X,)),
    "lax.iota": (lambda x: lax.iota(jnp.float32, 5) + x, (_X,)),
    "lax.full": (lambda x: lax.full((2, 3), 1.5) * x, (np.float32(2),)),
    "lax.full_like": (lambda x: lax.full_like(x, 3), (_X,)),
    "lax.empty": (lambda x: lax.empty((2, 3), jnp.float32) * 0 + x, (np.float32(2),)),
    "lax.concatenate": (lambda x, y: lax.concatenate([x, y], 1), (_X, _P)),
    "lax.collapse": (lambda x: lax.collapse(x, 0, 2), (values(2, 3, 4),)),
    "lax.expand_dims": (lambda x: lax.expand_dims(x, (1,)), (_X,)),
    "lax.pad": (lambda x: lax.pad(x, 0.5, ((1, 2, 1), (-1, 3, 0))), (_X,)),
    "lax.reshape": (lambda x: lax.reshape(x, (10, 2), (1, 0)), (_X,)),
    "lax.rev": (lambda x: lax.rev(x, (0, 1)), (_X,)),
    "lax.slice": (lambda x: lax.slice(x, (1, 0), (4, 5), (2, 3)), (_X,)),
    "lax.slice_in_dim": (lambda x: lax.slice_in_dim(x, 1, 3, axis=1), (_X,)),
    "lax.split": (lambda x: lax.split(x, (2, 3), 1), (_X,)),
    "lax.squeeze": (lambda x: lax.squeeze(x, (1,)), (values(3, 1),)),
    "lax.stack": (lambda x, y: lax.stack([x, y], 1), (_X, _P)),
    "lax.tile": (lambda x: lax.tile(x, (2, 3)), (_X,)),
    "lax.transpose": (lambda x: lax.transpose(x, (2, 0, 1)), (values(2, 3, 4),)),
    "lax.unstack": (lambda x: lax.unstack(x, 1), (_X,)),
    "lax.index_in_dim": (lambda x: lax.index_in_dim(x, 2), (_X,)),
    "lax.index_take": (lambda x, i: lax.index_take(x, (i % 4,), (0,)), (_X, integers(1, 3, 2))),
    "lax.dynamic_index_in_dim": (lambda x, i: lax.dynamic_index_in_dim(x, i), (_X, np.int32(2))),
    "lax.dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)), (_X, np.int32(2))),
    "lax.dynamic_slice_in_dim": (lambda x, i: lax.dynamic_slice_in_dim(x, i, 2), (_X, np.int32(1))),
    "lax.dynamic_update_index_in_dim": (
        lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 0),
        (_X, values(5), np.int32(2)),
    ),
    "lax.dynamic_update_slice": (
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)),
        (_X, values(2, 2), np.int32(2)),
    ),
    "lax.dynamic_update_slice_in_dim": (
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 0),
        (_X, values(2, 5), np.int32(1)),
    ),
    "lax.gather": (
        lambda x, i: lax.gather(x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 5)),
        (_X, integers(0, 3, 1)),
    ),
    **{
        f"lax.{name}": (_scatter(name), (_X, integers(0, 3, 0), values(3, 5)))
        for name in words("scatter_add scatter_max scatter_min scatter_mul scatter_sub")
    },
    "lax.scatter": (_scatter("scatter"), (_X, integers(0, 3, 1), values(3, 5))),
    "lax.scatter_apply": (lambda x, i: x.at[i].apply(jnp.sin), (_X, integers(0, 3))),
    **called("lax", lax, "argmax argmin", lambda f, x: f(x, 1, jnp.int32), _X),
    **called("lax", lax, "cumlogsumexp cummax cummin cumprod cumsum", lambda f, x: f(x, axis=1, reverse=True), _X),
    **called("lax", lax, "reduce_max reduce_min reduce_prod reduce_sum", lambda f, x: f(x, (0,)), _X),
    **called("lax", lax, "reduce_and reduce_or reduce_xor", lambda f, x: f(x, (0,)), _N),
    "lax.reduce": (
        lambda x, n: lax.reduce((x, n), (0.0, 0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)),
        (_X, _N),
    ),
    "lax.reduce_window": (lambda x: _pool(x, -np.inf, lax.max), (_IMAGE,)),
    "lax.reduce_window sum": (lambda x: _pool(x, 0.0, lax.add), (_IMAGE,)),
    "lax.associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), (_X,)),
    "lax.sort": (lambda x, y: lax.sort((x, y), num_keys=2), (_N, _X)),
    "lax.sort_key_val": (lambda x, y: lax.sort_key_val(x, y), (_X, _N)),
    "lax.top_k": (lambda x: lax.top_k(x, 2), (_X,)),
    "lax.approx_max_k": (lambda x: lax.approx_max_k(x, 2), (_X,)),
    "lax.approx_min_k": (lambda x: lax.approx_min_k(x, 2), (_X,)),
    **each("lax", lax, "batch_matmul", values(3, 4, 5), values(3, 5, 2)),
    **each("lax", lax, "dot", _X, values(5, 3)),
    "lax.dot_general": (
        lambda x, y: lax.dot_general(x, y, (((1,), (2,)), ((0,), (0,)))),
        (values(3, 4, 5), values(3, 2, 4)),
    ),
    "lax.ragged_dot": (lax.ragged_dot, (values(6, 4), values(3, 4, 5), integers(2, 1, 3))),
    "lax.ragged_dot_general": (
        lambda x, y, g: lax.ragged_dot_general(
            x, y, g, lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
        ),
        (values(6, 4), values(3, 4, 5), integers(2, 1, 3)),
    ),
    "lax.scaled_dot": (
        lambda x, y, a, b: lax.scaled_dot(
            x.astype(jnp.float8_e4m3fn),
            y.astype(jnp.float8_e4m3fn),
            lhs_scale=a.astype(jnp.float8_e8m0fnu),
            rhs_scale=b.astype(jnp.float8_e8m0fnu),
            preferred_element_type=jnp.float32,
        ),
        (values(2, 4, 32), values(2, 32, 3), np.ones((2, 4, 1), np.float32), np.ones((2, 1, 3), np.float32)),
    ),
    "lax.conv": (lambda x, w: lax.conv(x, w, (1, 2), "SAME"), (values(1, 3, 8, 8), values(4, 3, 3, 3))),
    "lax.conv_general_dilated": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (2, 1), ((1, 2), (0, 1)), (1, 2), (2, 1), _NHWC, feature_group_count=3
        ),
        (_IMAGE, values(3, 3, 1, 6)),
    ),
    "lax.conv_general_dilated_local": (
        lambda x, w: lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (3, 3), dimension_numbers=_NHWC),
        (values(1, 5, 5, 2), values(3, 3, 18, 4)),
    ),
    "lax.conv_general_dilated_patches": (
        lambda x: lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "SAME"),
        (values(1, 2, 5, 5),),
    ),
    "lax.conv_transpose": (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), (_IMAGE, values(3, 3, 3, 2))),
    "lax.conv_with_general_padding": (
        lambda x, w: lax.conv_with_general_padding(x, w, (1, 1), ((1, 1), (0, 2)), None, None),
        (values(1, 3, 8, 8), values(4, 3, 3, 3)),
    ),
    "lax.fft": (lambda x: lax.fft(x, "FFT", (4, 5)), (complexes(4, 5),)),
    "lax.cond": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), (np.array(True), _X)),
    "lax.switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), (np.int32(1), _X)),
    "lax.fori_loop": (lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.5 - i, x), (_X,)),
    "lax.while_loop": (lambda x: lax.while_loop(lambda c: c.sum() < 90, lambda c: c * 2, x), (_P,)),
    "lax.scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True), (_X,)),
    "lax.map": (lambda x: lax.map(lambda r: r.sum() * r, x, batch_size=2), (_X,)),
    "lax.composite": (lambda x: lax.composite(lambda v: v * 2 + 1, "pumice.test")(x), (_X,)),
    "lax.platform_dependent": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), (_X,)),
    "lax.optimization_barrier": (lambda x, y: lax.optimization_barrier((x, y)), (_X, _P)),
    "lax.custom_root": (
        lambda x: lax.custom_root(
            lambda v: v * v - x,
            x,
            lambda f, start: lax.fori_loop(0, 8, lambda _, v: v - f(v) / (2 * v), start),
            lambda g, y: y / g(1.0),
        ),
        (np.float32(2),),
    ),
    "lax.custom_linear_solve": (
        lambda a, b: lax.custom_linear_solve(lambda v: a * v, b, lambda f, r: r / a, symmetric=True),
        (positive(5), values(5)),
    ),
    "lax.rng_bit_generator": (
        lambda k: lax.rng_bit_generator(k, (3, 4), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)[1],
        (np.array([1, 2, 3, 4], np.uint32),),
    ),
    **{
        f"lax.rng_bit_generator {algorithm} {len(shape)}": (
            partial(lax.rng_bit_generator, shape=shape, algorithm=lax.RandomAlgorithm(algorithm)),
            (np.array([1, 2, 3, 4], np.uint32),),
        )
        for algorithm in (0, 1, 2)
        for shape in ((), (5,), (4, 3), (3, 5))
    },
    "lax.after_all": (lambda x: (lax.after_all(lax.create_token(), lax.create_token()), x * 2)[1], (_X,)),
    "lax.create_token": (lambda x: (lax.create_token(), x * 2)[1], (_X,)),
    "lax.dce_sink": (lambda x: (lax.dce_sink(x), x * 2)[1], (_X,)),
}

NOT_LAX: Final = words(
    # Several devices, or manual axes of a mesh.
    "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute precv psend pshuffle psum "
    "psum_scatter pswapaxes ragged_all_to_all with_sharding_constraint stage "
    # Shapes and descriptions, which are known before a program runs.
    "ConvGeneralDilatedDimensionNumbers DotDimensionNumbers PrecisionLike broadcast_shapes conv_dimension_numbers "
    "conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple "
    "padtype_to_pads reduce_window_shape_tuple shape_as_value "
    # Its bits are the device's own.
    "rng_uniform"
)

_QKV: Final = (values(2, 5, 2, 8), values(2, 6, 2, 8), values(2, 6, 2, 8) * np.float32(0.5))

NN: Final[Mapping[str, Case]] = {
    **each("nn", nn, "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu", _X),
    **each("nn", nn, "log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu", _X),
    **each("nn", nn, "soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize swish tanh", _X),
    "nn.log1mexp": (nn.log1mexp, (_P,)),
    "nn.glu": (nn.glu, (values(4, 6),)),
    "nn.one_hot": (lambda i: nn.one_hot(i, 10), (_N,)),
    "nn.dot_product_attention": (lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True), _QKV),
}
NOT_NN: Final = words("get_scaled_dot_general_config scaled_dot_general scaled_matmul")
"""A configuration, and what JAX has for GPUs of NVIDIA's alone."""

INITIALIZERS: Final[Mapping[str, Case]] = {
    **called(
        "nn.initializers",
        nn.initializers,
        "glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform lecun_normal "
        "lecun_uniform normal orthogonal truncated_normal uniform xavier_normal xavier_uniform",
        lambda f, k: f()(jax.random.wrap_key_data(k), (6, 4)),
        np.array([1, 2], np.uint32),
    ),
    "nn.initializers.constant": (
        lambda x: nn.initializers.constant(2.5)(jax.random.key(0), (2, 3)) * x,
        (np.float32(2),),
    ),
    "nn.initializers.ones": (lambda x: nn.initializers.ones(jax.random.key(0), (2, 3)) * x, (np.float32(2),)),
    "nn.initializers.zeros": (lambda x: nn.initializers.zeros(jax.random.key(0), (2, 3)) * x, (np.float32(2),)),
    "nn.initializers.variance_scaling": (
        lambda k: nn.initializers.variance_scaling(1.0, "fan_in", "normal")(jax.random.wrap_key_data(k), (6, 4)),
        (np.array([1, 2], np.uint32),),
    ),
    "nn.initializers.delta_orthogonal": (
        lambda k: jnp.abs(nn.initializers.delta_orthogonal()(jax.random.wrap_key_data(k), (3, 3, 4))).sum((0, 2)),
        (np.array([1, 2], np.uint32),),
    ),
}
