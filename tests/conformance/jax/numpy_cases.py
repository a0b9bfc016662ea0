"""Calls of jax.numpy's public functions, one or more of each, with arguments of the kinds that programs pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Case: TypeAlias = tuple[Callable[..., Any], Sequence[Array]]


def values(*shape: int) -> Array:
    """Normal numbers, the same for the same shape."""
    return np.random.default_rng(sum(shape) + len(shape)).normal(size=shape).astype(np.float32)


def positive(*shape: int) -> Array:
    """Numbers from 0.1 to about 3."""
    return np.abs(values(*shape)) + np.float32(0.1)


def unit(*shape: int) -> Array:
    """Numbers between -0.95 and 0.95."""
    return np.tanh(values(*shape)) * np.float32(0.95)


def whole(*shape: int) -> Array:
    """Integers from 1 to 9."""
    return np.random.default_rng(sum(shape)).integers(1, 10, shape).astype(np.int32)


def truths(*shape: int) -> Array:
    """Booleans."""
    return values(*shape) > 0


def complexes(*shape: int) -> Array:
    """Complex numbers."""
    return (values(*shape) + 1j * values(*shape[::-1]).reshape(shape)).astype(np.complex64)


def integers(*items: int) -> Array:
    """A vector of 32-bit integers."""
    return np.array(items, np.int32)


def each(prefix: str, module: Any, names: str, *arguments: Array) -> dict[str, Case]:
    """The functions of these names, all with the same arguments."""
    return {f"{prefix}.{name}": (getattr(module, name), arguments) for name in names.split()}


def called(
    prefix: str, module: Any, names: str, call: Callable[..., Any], *arguments: Array, label: str = ""
) -> dict[str, Case]:
    """The functions of these names, each called by a function that takes it first."""
    return {f"{prefix}.{name}{label}": (partial(call, getattr(module, name)), arguments) for name in names.split()}


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


_X: Final = values(4, 5)
_P: Final = positive(4, 5)
_U: Final = unit(4, 5)
_N: Final = whole(4, 5)
_V: Final = values(7)
_WITH_NAN: Final = np.where(_X > 1, np.float32(np.nan), _X)
_SETS: Final = (integers(3, 1, 2, 1, 5), integers(5, 7, 1, 1))

ELEMENTWISE: Final[Mapping[str, Case]] = {
    **each("jnp", jnp, "abs absolute angle around atan arctan asinh arcsinh cbrt ceil conj conjugate cos cosh", _X),
    **each("jnp", jnp, "deg2rad degrees exp exp2 expm1 fabs floor frexp i0 imag isfinite isinf isnan", _X),
    **each("jnp", jnp, "iscomplex isneginf isposinf isreal modf nan_to_num negative positive rad2deg radians", _X),
    **each("jnp", jnp, "real rint round sign signbit sin sinc sinh spacing square tan tanh trunc", _X),
    **each("jnp", jnp, "log log10 log1p log2 reciprocal sqrt", _P),
    **each("jnp", jnp, "acos arccos asin arcsin atanh arctanh", _U),
    **each("jnp", jnp, "acosh arccosh", _P + np.float32(1)),
    **each("jnp", jnp, "add subtract multiply maximum minimum fmax fmin atan2 arctan2 copysign equal", _X, _P),
    **each("jnp", jnp, "not_equal greater greater_equal less less_equal hypot logaddexp logaddexp2", _X, _P),
    **each("jnp", jnp, "divide true_divide floor_divide fmod mod remainder divmod nextafter heaviside", _X, _P),
    **each("jnp", jnp, "power pow float_power", _P, _X),
    **each("jnp", jnp, "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm", _N, whole(5)),
    **each("jnp", jnp, "bitwise_left_shift bitwise_right_shift", _N, whole(5)),
    **each("jnp", jnp, "bitwise_not bitwise_invert invert bitwise_count", _N),
    **each("jnp", jnp, "logical_and logical_or logical_xor", truths(4, 5), truths(5)),
    **each("jnp", jnp, "logical_not", truths(4, 5)),
    **each("jnp", jnp, "ldexp", _X, _N),
    "jnp.isclose": (jnp.isclose, (_X, _X + np.float32(1e-6))),
    "jnp.clip": (lambda x: jnp.clip(x, -0.5, 0.5), (_X,)),
    "jnp.where": (jnp.where, (truths(4, 5), _X, _P)),
    "jnp.select": (lambda a, b: jnp.select([a > 1, a > 0], [a, b], 7.0), (_X, _P)),
    "jnp.piecewise": (lambda x: jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * v, 0.5]), (_X,)),
    "jnp.choose": (lambda i, a, b: jnp.choose(i % 2, [a, b], mode="wrap"), (_N, _X, _P)),
    "jnp.unwrap": (jnp.unwrap, (_V * np.float32(4),)),
    "jnp.interp": (jnp.interp, (values(6), np.arange(5, dtype=np.float32), values(5))),
    "jnp.angle complex": (jnp.angle, (complexes(3, 4),)),
    "jnp.real complex": (jnp.real, (complexes(3, 4),)),
    "jnp.vectorize": (lambda x: jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, x), (_X,)),
    "jnp.astype": (lambda x: jnp.astype(x, jnp.int32), (_X,)),
}

REDUCTIONS: Final[Mapping[str, Case]] = {
    **each("jnp", jnp, "all any amax amin argmax argmin average count_nonzero max mean median min nanargmax", _X),
    **each("jnp", jnp, "nanargmin nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar", _WITH_NAN),
    **each("jnp", jnp, "prod ptp std sum var trace cumprod cumsum", _X),
    **each("jnp", jnp, "nancumprod nancumsum", _WITH_NAN),
    **called(
        "jnp",
        jnp,
        "all any max mean median min prod ptp std sum var argmax argmin count_nonzero average",
        lambda f, x: f(x, axis=1, keepdims=True),
        _X,
        label=" axis",
    ),
    "jnp.cumulative_sum": (lambda x: jnp.cumulative_sum(x, axis=1, include_initial=True), (_X,)),
    "jnp.cumulative_prod": (lambda x: jnp.cumulative_prod(x, axis=0), (_X,)),
    "jnp.percentile": (lambda x: jnp.percentile(x, jnp.array([10.0, 50.0, 75.0]), axis=1), (_X,)),
    "jnp.quantile": (lambda x: jnp.quantile(x, 0.3, axis=0, method="nearest"), (_X,)),
    "jnp.nanpercentile": (lambda x: jnp.nanpercentile(x, 40.0), (_WITH_NAN,)),
    "jnp.nanquantile": (lambda x: jnp.nanquantile(x, 0.6, axis=1), (_WITH_NAN,)),
    "jnp.corrcoef": (jnp.corrcoef, (_X,)),
    "jnp.cov": (jnp.cov, (_X,)),
    "jnp.histogram": (lambda x: jnp.histogram(x, bins=5), (_V,)),
    "jnp.histogram2d": (lambda x, y: jnp.histogram2d(x, y, bins=3), (_V, positive(7))),
    "jnp.histogramdd": (lambda x: jnp.histogramdd(x, bins=3), (values(7, 2),)),
    "jnp.histogram_bin_edges": (lambda x: jnp.histogram_bin_edges(x, bins=5), (_V,)),
    "jnp.bincount": (lambda x: jnp.bincount(x.reshape(-1), length=11), (_N,)),
    "jnp.digitize": (lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), (_X,)),
    "jnp.apply_along_axis": (lambda x: jnp.apply_along_axis(lambda v: v.sum() * v, 1, x), (_X,)),
    "jnp.apply_over_axes": (lambda x: jnp.apply_over_axes(jnp.sum, x, [0, 1]), (_X,)),
    "jnp.allclose": (jnp.allclose, (_X, _X)),
    "jnp.array_equal": (jnp.array_equal, (_X, _P)),
    "jnp.array_equiv": (jnp.array_equiv, (_X, _P)),
    "jnp.trapezoid": (jnp.trapezoid, (_X,)),
}

SHAPES: Final[Mapping[str, Case]] = {
    **each("jnp", jnp, "array asarray atleast_1d atleast_2d atleast_3d copy flip fliplr flipud", _X),
    **each("jnp", jnp, "matrix_transpose ones_like ravel rot90 squeeze transpose tril triu zeros_like", _X),
    "jnp.empty_like": (lambda x: jnp.empty_like(x) * 0, (_X,)),
    "jnp.permute_dims": (lambda x: jnp.permute_dims(x, (1, 0)), (_X,)),
    **each("jnp", jnp, "diag diagflat vander", _V),
    **each("jnp", jnp, "diagonal", _X),
    "jnp.append": (lambda x, y: jnp.append(x, y, axis=0), (_X, _P)),
    "jnp.array_split": (lambda x: jnp.array_split(x, 3), (_V,)),
    "jnp.block": (lambda x, y: jnp.block([[x, y], [y, x]]), (_X, _P)),
    "jnp.broadcast_arrays": (lambda x, y: jnp.broadcast_arrays(x, y), (_X, values(5))),
    "jnp.broadcast_to": (lambda x: jnp.broadcast_to(x, (3, 4, 5)), (_X,)),
    "jnp.column_stack": (lambda x, y: jnp.column_stack([x, y]), (_V, positive(7))),
    "jnp.concat": (lambda x, y: jnp.concat([x, y], axis=1), (_X, _P)),
    "jnp.concatenate": (lambda x, y: jnp.concatenate([x, y]), (_X, _P)),
    "jnp.delete": (lambda x: jnp.delete(x, jnp.array([1, 3]), axis=1, assume_unique_indices=True), (_X,)),
    "jnp.diff": (lambda x: jnp.diff(x, n=2), (_X,)),
    "jnp.dsplit": (lambda x: jnp.dsplit(x, 2), (values(2, 3, 4),)),
    "jnp.dstack": (lambda x, y: jnp.dstack([x, y]), (_X, _P)),
    "jnp.ediff1d": (jnp.ediff1d, (_V,)),
    "jnp.expand_dims": (lambda x: jnp.expand_dims(x, (0, 2)), (_X,)),
    "jnp.fill_diagonal": (lambda x: jnp.fill_diagonal(x, 3.0, inplace=False), (_X,)),
    "jnp.gradient": (jnp.gradient, (_X,)),
    "jnp.hsplit": (lambda x: jnp.hsplit(x, 2), (values(3, 4),)),
    "jnp.hstack": (lambda x, y: jnp.hstack([x, y]), (_X, _P)),
    "jnp.insert": (lambda x: jnp.insert(x, jnp.array([1, 4]), 9.0, axis=1), (_X,)),
    "jnp.meshgrid": (lambda x, y: jnp.meshgrid(x, y), (_V, values(3))),
    "jnp.moveaxis": (lambda x: jnp.moveaxis(x, 0, -1), (values(2, 3, 4),)),
    "jnp.pad": (lambda x: jnp.pad(x, 2), (_X,)),
    **{
        f"jnp.pad {mode}": (lambda x, mode=mode: jnp.pad(x, ((1, 2), (3, 0)), mode=mode), (_X,))
        for mode in words("edge linear_ramp maximum mean median minimum reflect symmetric wrap")
    },
    "jnp.packbits": (lambda x: jnp.packbits(x, axis=1), (truths(3, 11),)),
    "jnp.unpackbits": (lambda x: jnp.unpackbits(x, axis=1), (whole(3, 2).astype(np.uint8),)),
    "jnp.repeat": (lambda x: jnp.repeat(x, 3, axis=1), (_X,)),
    "jnp.repeat counts": (lambda x, n: jnp.repeat(x, n, total_repeat_length=9), (values(3), integers(2, 0, 4))),
    "jnp.reshape": (lambda x: jnp.reshape(x, (2, 10), order="F"), (_X,)),
    "jnp.resize": (lambda x: jnp.resize(x, (3, 9)), (_X,)),
    "jnp.roll": (lambda x: jnp.roll(x, (1, 2), (0, 1)), (_X,)),
    "jnp.roll by argument": (lambda x, n: jnp.roll(x, n, 1), (_X, np.array(3, np.int32))),
    "jnp.rollaxis": (lambda x: jnp.rollaxis(x, 2), (values(2, 3, 4),)),
    "jnp.split": (lambda x: jnp.split(x, [2, 5]), (_V,)),
    "jnp.stack": (lambda x, y: jnp.stack([x, y], 1), (_X, _P)),
    "jnp.swapaxes": (lambda x: jnp.swapaxes(x, 0, 2), (values(2, 3, 4),)),
    "jnp.tile": (lambda x: jnp.tile(x, (2, 1, 3)), (_X,)),
    "jnp.trim_zeros": (lambda x: jnp.where(x > 0, x, 0), (_V,)),
    "jnp.unstack": (jnp.unstack, (_X,)),
    "jnp.vsplit": (lambda x: jnp.vsplit(x, 2), (_X,)),
    "jnp.vstack": (lambda x, y: jnp.vstack([x, y]), (_X, _P)),
    "jnp.full_like": (lambda x: jnp.full_like(x, 2.5), (_X,)),
    "jnp.full": (lambda x: jnp.full((2, 3), x), (np.float32(2.5),)),
    "jnp.ones": (lambda x: jnp.ones((2, 3)) + x, (np.float32(2.5),)),
    "jnp.zeros": (lambda x: jnp.zeros((2, 3)) + x, (np.float32(2.5),)),
    "jnp.empty": (lambda x: jnp.empty((2, 3)) * 0 + x, (np.float32(2.5),)),
    "jnp.eye": (lambda x: jnp.eye(3, 4, k=1) * x, (np.float32(2.5),)),
    "jnp.identity": (lambda x: jnp.identity(3) * x, (np.float32(2.5),)),
    "jnp.arange": (lambda x: jnp.arange(2, 20, 3) * x, (np.float32(2.5),)),
    "jnp.linspace": (lambda x: jnp.linspace(0.0, x, 7), (np.float32(2.5),)),
    "jnp.logspace": (lambda x: jnp.logspace(0.0, x, 7), (np.float32(2.5),)),
    "jnp.geomspace": (lambda x: jnp.geomspace(1.0, x, 7), (np.float32(2.5),)),
    "jnp.tri": (lambda x: jnp.tri(3, 4, 1) * x, (np.float32(2.5),)),
    "jnp.indices": (lambda x: jnp.indices((2, 3)) * x, (np.int32(2),)),
    "jnp.fromfunction": (lambda x: jnp.fromfunction(lambda i, j: i * x + j, (2, 3)), (np.float32(2.5),)),
    "jnp.ix_": (lambda x, y: jnp.ix_(x, y), (integers(0, 2), integers(1, 3))),
    **called("jnp", jnp, "bartlett blackman hamming hanning", lambda f, x: f(8) * x, np.float32(2.5)),
    "jnp.kaiser": (lambda x: jnp.kaiser(8, x), (np.float32(2.5),)),
}

INDEXING: Final[Mapping[str, Case]] = {
    "jnp.take": (lambda x, i: jnp.take(x, i, axis=1), (_X, integers(0, 3, -1, 9))),
    "jnp.take_along_axis": (lambda x, i: jnp.take_along_axis(x, i % 5, axis=1), (_X, whole(4, 2))),
    "jnp.put": (lambda x, i, v: jnp.put(x, i, v, inplace=False), (_X, integers(0, 3, 19), values(3))),
    "jnp.put_along_axis": (
        lambda x, i, v: jnp.put_along_axis(x, i % 5, v, axis=1, inplace=False),
        (_X, whole(4, 1), values(4, 1)),
    ),
    "jnp.place": (lambda x, m, v: jnp.place(x, m, v, inplace=False), (_X, truths(4, 5), values(3))),
    "jnp.compress": (lambda x: jnp.compress(np.array([True, False, True, True]), x, axis=0, size=3), (_X,)),
    "jnp.extract": (lambda m, x: jnp.extract(m, x, size=8), (truths(4, 5), _X)),
    "jnp.argwhere": (lambda x: jnp.argwhere(x > 0, size=6), (_X,)),
    "jnp.flatnonzero": (lambda x: jnp.flatnonzero(x > 0, size=6), (_X,)),
    "jnp.nonzero": (lambda x: jnp.nonzero(x > 0, size=6), (_X,)),
    "jnp.searchsorted": (lambda x, v: jnp.searchsorted(jnp.sort(x), v), (_V, values(4))),
    **{
        f"jnp.searchsorted {method}": (
            lambda x, v, method=method: jnp.searchsorted(jnp.sort(x), v, side="right", method=method),
            (_V, values(4)),
        )
        for method in words("sort compare_all scan_unrolled")
    },
    **each("jnp", jnp, "sort argsort", _X),
    **each("jnp", jnp, "sort_complex", complexes(6)),
    "jnp.lexsort": (lambda x, y: jnp.lexsort((x, y)), (_V, integers(1, 2, 1, 2, 1, 2, 1))),
    "jnp.partition": (lambda x: jnp.sort(jnp.partition(x, 2)[:, :2]), (_X,)),
    "jnp.argpartition": (lambda x: jnp.sort(jnp.argpartition(x, 2)[:, :2]), (_X,)),
    "jnp.unravel_index": (lambda i: jnp.unravel_index(i, (4, 5)), (integers(3, 7, 19),)),
    "jnp.ravel_multi_index": (lambda i, j: jnp.ravel_multi_index((i, j), (4, 5), mode="clip"), (whole(3), whole(3))),
    "jnp.diag_indices": (lambda x: x[jnp.diag_indices(4)], (_X,)),
    "jnp.diag_indices_from": (lambda x: x[jnp.diag_indices_from(x)], (values(4, 4),)),
    "jnp.tril_indices": (lambda x: x[jnp.tril_indices(4)], (_X,)),
    "jnp.triu_indices": (lambda x: x[jnp.triu_indices(4)], (_X,)),
    "jnp.tril_indices_from": (lambda x: x[jnp.tril_indices_from(x)], (_X,)),
    "jnp.triu_indices_from": (lambda x: x[jnp.triu_indices_from(x)], (_X,)),
    "jnp.mask_indices": (lambda x: x[jnp.mask_indices(4, jnp.triu, size=10)], (_X,)),
    "jnp.isin": (jnp.isin, (_N, integers(2, 5))),
    "jnp.intersect1d": (lambda a, b: jnp.intersect1d(a, b, size=4), _SETS),
    "jnp.setdiff1d": (lambda a, b: jnp.setdiff1d(a, b, size=4), _SETS),
    "jnp.setxor1d": (lambda a, b: jnp.setxor1d(a, b, size=4), _SETS),
    "jnp.union1d": (lambda a, b: jnp.union1d(a, b, size=6), _SETS),
    "jnp.unique": (lambda x: jnp.unique(x, size=9, return_counts=True), (_N,)),
    **called(
        "jnp",
        jnp,
        "unique_all unique_counts unique_inverse unique_values",
        lambda f, x: tuple(jax.tree.leaves(f(x, size=9))),
        _N,
    ),
}

PRODUCTS: Final[Mapping[str, Case]] = {
    **each("jnp", jnp, "dot inner vdot outer convolve correlate kron polyadd polymul polysub", _V, positive(7)),
    **each("jnp", jnp, "matmul", _X, values(5, 3)),
    **each("jnp", jnp, "matvec", _X, values(5)),
    **each("jnp", jnp, "vecmat", values(4), _X),
    **each("jnp", jnp, "vecdot", _X, _P),
    **each("jnp", jnp, "cross", values(4, 3), positive(4, 3)),
    "jnp.tensordot": (lambda x, y: jnp.tensordot(x, y, 1), (_X, values(5, 3))),
    "jnp.einsum": (lambda x, y: jnp.einsum("ij,kj,i->ki", x, y, x[:, 0]), (_X, values(3, 5))),
    "jnp.polyval": (jnp.polyval, (values(4), _X)),
    "jnp.polyder": (jnp.polyder, (_V,)),
    "jnp.polyint": (jnp.polyint, (_V,)),
    "jnp.poly": (jnp.poly, (values(3),)),
    "jnp.polydiv": (jnp.polydiv, (values(6), positive(3))),
    "jnp.polyfit": (lambda x, y: jnp.polyfit(x, y, 2), (_V, positive(7))),
}

NUMPY: Final[Mapping[str, Case]] = {**ELEMENTWISE, **REDUCTIONS, **SHAPES, **INDEXING, **PRODUCTS}

# Text, files, Python objects, and questions about types: nothing for a device to compute.
NOT_NUMPY: Final = words(
    "array_repr array_str save savez load frombuffer fromfile fromiter fromstring from_dlpack get_printoptions "
    "set_printoptions printoptions frompyfunc can_cast isdtype issubdtype promote_types result_type iscomplexobj "
    "isrealobj isscalar iterable ndim size shape einsum_path broadcast_shapes "
    # Eigenvalues of general matrices, for which StableHLO has no operation.
    "roots"
)
