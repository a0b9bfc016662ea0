"""Calls of the public functions of jax.scipy, jax.numpy.linalg, jax.numpy.fft, jax.lax.linalg and jax.random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import jax.scipy.cluster.vq
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.linalg
import jax.scipy.ndimage
import jax.scipy.signal
import jax.scipy.sparse.linalg
import jax.scipy.special
import jax.scipy.stats
import numpy as np
from conformance.jax.numpy_cases import (
    Array,
    Case,
    called,
    complexes,
    each,
    integers,
    positive,
    unit,
    values,
    whole,
    words,
)

_X: Final = values(4, 5)
_P: Final = positive(4, 5)
_U: Final = unit(4, 5)
_S: Final = values(4, 4)
_A: Final = _S + 4 * np.eye(4, dtype=np.float32)
_SPD: Final = (_S @ _S.T + 4 * np.eye(4)).astype(np.float32)
_SYMMETRIC: Final = (_S + _S.T).astype(np.float32)
_V: Final = values(7)
_KEY: Final = np.array([1, 2], np.uint32)

_LINALG: Final = jnp.linalg
_SPECIAL: Final = jax.scipy.special
_SCIPY: Final = jax.scipy.linalg

FFT: Final[Mapping[str, Case]] = {
    **each("jnp.fft", jnp.fft, "fft fft2 fftn fftshift ifft ifft2 ifftn ifftshift", complexes(4, 6)),
    **each("jnp.fft", jnp.fft, "rfft rfft2 rfftn ihfft", values(4, 6)),
    **each("jnp.fft", jnp.fft, "irfft irfft2 irfftn hfft", complexes(4, 6)),
    "jnp.fft.fftfreq": (lambda x: jnp.fft.fftfreq(8) * x, (np.float32(2),)),
    "jnp.fft.rfftfreq": (lambda x: jnp.fft.rfftfreq(8) * x, (np.float32(2),)),
    **each("jsp.fft", jax.scipy.fft, "dct dctn idct idctn", values(4, 6)),
}


def _up_to_signs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compares factors whose columns may have either sign."""
    return lambda *a: jax.tree.map(jnp.abs, function(*a))


LINALG: Final[Mapping[str, Case]] = {
    **each("jnp.linalg", _LINALG, "cond det inv slogdet pinv norm matrix_norm matrix_rank trace", _A),
    **each("jnp.linalg", _LINALG, "cholesky eigvalsh", _SPD),
    **each("jnp.linalg", _LINALG, "diagonal matrix_transpose svdvals vector_norm", _X),
    **each("jnp.linalg", _LINALG, "matmul tensordot", _A, _S),
    **each("jnp.linalg", _LINALG, "outer", _V, positive(7)),
    **each("jnp.linalg", _LINALG, "vecdot", _X, _P),
    **each("jnp.linalg", _LINALG, "cross", values(4, 3), positive(4, 3)),
    **each("jnp.linalg", _LINALG, "solve", _A, values(4, 2)),
    "jnp.linalg.eigh": (_up_to_signs(lambda x: tuple(jnp.linalg.eigh(x))), (_SPD,)),
    "jnp.linalg.qr": (_up_to_signs(lambda x: tuple(jnp.linalg.qr(x))), (values(5, 3),)),
    "jnp.linalg.qr complete": (_up_to_signs(lambda x: jnp.linalg.qr(x, mode="complete")[1]), (values(5, 3),)),
    "jnp.linalg.svd": (_up_to_signs(lambda x: tuple(jnp.linalg.svd(x, full_matrices=False))), (values(5, 3),)),
    "jnp.linalg.svd full": (lambda x: jnp.linalg.svd(x, full_matrices=True)[1], (values(3, 5),)),
    "jnp.linalg.svd batch": (
        lambda x: (lambda u, s, v: (u * s[:, None]) @ v)(*jnp.linalg.svd(x, full_matrices=False)),
        (values(2, 5, 3),),
    ),
    "jnp.linalg.lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[0], (values(6, 3), values(6, 2))),
    "jnp.linalg.matrix_power": (lambda x: jnp.linalg.matrix_power(x, -3), (_A,)),
    "jnp.linalg.multi_dot": (lambda a, b, c: jnp.linalg.multi_dot([a, b, c]), (_A, _X, values(5, 2))),
    "jnp.linalg.tensorinv": (lambda x: jnp.linalg.tensorinv(x.reshape(2, 2, 4)), (_A,)),
    "jnp.linalg.tensorsolve": (
        lambda a, b: jnp.linalg.tensorsolve(a.reshape(2, 2, 2, 2), b.reshape(2, 2)),
        (_A, values(4)),
    ),
    "lax.linalg.cholesky": (jax.lax.linalg.cholesky, (_SPD,)),
    "lax.linalg.cholesky_update": (jax.lax.linalg.cholesky_update, (np.linalg.cholesky(_SPD).T.copy(), values(4))),
    "lax.linalg.eigh": (_up_to_signs(jax.lax.linalg.eigh), (_SPD,)),
    "lax.linalg.householder_product": (jax.lax.linalg.householder_product, (values(5, 3), np.abs(unit(3)))),
    "lax.linalg.lu": (jax.lax.linalg.lu, (values(4, 4),)),
    "lax.linalg.lu wide": (jax.lax.linalg.lu, (values(2, 3, 5),)),
    "lax.linalg.lu tall": (jax.lax.linalg.lu, (values(5, 3),)),
    "lax.linalg.lu_pivots_to_permutation": (
        lambda p: jax.lax.linalg.lu_pivots_to_permutation(p, 4),
        (integers(2, 3, 2, 3),),
    ),
    "lax.linalg.qr": (_up_to_signs(lambda x: jax.lax.linalg.qr(x, full_matrices=False)), (values(5, 3),)),
    "lax.linalg.qdwh": (lambda x: jax.lax.linalg.qdwh(x)[:2], (_A,)),
    "lax.linalg.svd": (_up_to_signs(lambda x: jax.lax.linalg.svd(x, full_matrices=False)), (values(4, 6),)),
    "lax.linalg.symmetric_product": (jax.lax.linalg.symmetric_product, (values(4, 3), _SYMMETRIC)),
    "lax.linalg.triangular_solve": (
        lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        (_A, values(4, 2)),
    ),
    "lax.linalg.tridiagonal_solve": (
        jax.lax.linalg.tridiagonal_solve,
        (values(4) * np.float32(0.2), positive(4) + 2, values(4) * np.float32(0.2), values(4, 2)),
    ),
    "lax.linalg.ormqr": (jax.lax.linalg.ormqr, (values(5, 3), np.abs(unit(3)), values(5, 2))),
    "jsp.linalg.block_diag": (lambda a, b: _SCIPY.block_diag(a, b), (_S, _X)),
    "jsp.linalg.cho_factor": (lambda x: _SCIPY.cho_factor(x)[0], (_SPD,)),
    "jsp.linalg.cho_solve": (lambda x, b: _SCIPY.cho_solve(_SCIPY.cho_factor(x), b), (_SPD, values(4))),
    **each("jsp.linalg", _SCIPY, "cholesky", _SPD),
    **each("jsp.linalg", _SCIPY, "det inv expm lu_factor", _A),
    **each("jsp.linalg", _SCIPY, "fiedler circulant", values(5)),
    **each("jsp.linalg", _SCIPY, "companion fiedler_companion", positive(5)),
    **each("jsp.linalg", _SCIPY, "hankel toeplitz", values(4), values(3)),
    **called(
        "jsp.linalg",
        _SCIPY,
        "dft hadamard helmert hilbert invhilbert invpascal pascal",
        lambda f, x: f(4) * x,
        np.float32(2),
    ),
    "jsp.linalg.convolution_matrix": (lambda x: _SCIPY.convolution_matrix(x, 4), (values(3),)),
    "jsp.linalg.leslie": (_SCIPY.leslie, (positive(4), positive(3))),
    "jsp.linalg.eigh": (lambda x: _SCIPY.eigh(x, eigvals_only=True), (_SPD,)),
    "jsp.linalg.eigh_tridiagonal": (
        lambda d, e: _SCIPY.eigh_tridiagonal(d, e, eigvals_only=True),
        (values(5), positive(4)),
    ),
    "jsp.linalg.expm_frechet": (lambda a, e: _SCIPY.expm_frechet(a * 0.1, e), (_S, _A)),
    "jsp.linalg.lu": (_SCIPY.lu, (_S,)),
    "jsp.linalg.lu_solve": (lambda a, b: _SCIPY.lu_solve(_SCIPY.lu_factor(a), b), (_A, values(4))),
    "jsp.linalg.polar": (_SCIPY.polar, (_A,)),
    "jsp.linalg.qr": (_up_to_signs(_SCIPY.qr), (_A,)),
    "jsp.linalg.qr_multiply": (_up_to_signs(lambda a, c: _SCIPY.qr_multiply(a, c)), (_A, _S)),
    "jsp.linalg.solve": (lambda a, b: _SCIPY.solve(a, b, assume_a="pos"), (_SPD, values(4))),
    "jsp.linalg.solve_triangular": (lambda a, b: _SCIPY.solve_triangular(a, b, trans=1), (_A, values(4))),
    "jsp.linalg.svd": (lambda x: _SCIPY.svd(x, compute_uv=False), (_X,)),
}
# Eigenvalues of matrices that are not symmetric, which are LAPACK's only, on a CPU only.
NOT_LINALG: Final = words("eig eigvals hessenberg schur rsf2csf sqrtm funm solve_sylvester tridiagonal")

SPECIAL: Final[Mapping[str, Case]] = {
    **each("jsp.special", _SPECIAL, "digamma entr exp1 expi factorial gamma gammaln gammasgn loggamma", _P),
    **each("jsp.special", _SPECIAL, "dawsn erf erfc erfcx expit fresnel i0 i0e i1 i1e log_ndtr log_softmax", _X),
    **each("jsp.special", _SPECIAL, "logsumexp ndtr sici softmax", _X),
    **each("jsp.special", _SPECIAL, "erfinv", _U),
    **each("jsp.special", _SPECIAL, "logit ndtri spence", np.abs(_U) * np.float32(0.9) + np.float32(0.05)),
    **each("jsp.special", _SPECIAL, "beta betaln boxcox gammainc gammaincc kl_div owens_t poch rel_entr", _P, _P[::-1]),
    **each("jsp.special", _SPECIAL, "xlog1py xlogy comb", _P + 2, _P[::-1]),
    **each("jsp.special", _SPECIAL, "boxcox1p", _P, _P),
    **each("jsp.special", _SPECIAL, "zeta", _P + np.float32(1.5), _P),
    "jsp.special.bernoulli": (lambda x: _SPECIAL.bernoulli(6) * x, (np.float32(2),)),
    "jsp.special.bessel_jn": (lambda x: _SPECIAL.bessel_jn(x, v=3, n_iter=20), (_P,)),
    "jsp.special.betainc": (_SPECIAL.betainc, (_P, _P[::-1], np.abs(_U))),
    "jsp.special.expn": (lambda x: _SPECIAL.expn(2, x), (_P,)),
    "jsp.special.hyp1f1": (_SPECIAL.hyp1f1, (_P, _P[::-1] + 1, _U)),
    "jsp.special.hyp2f1": (_SPECIAL.hyp2f1, (_P, _P[::-1], _P + 2, _U * np.float32(0.5))),
    "jsp.special.multigammaln": (lambda x: _SPECIAL.multigammaln(x, 2), (_P + 2,)),
    "jsp.special.polygamma": (lambda x: _SPECIAL.polygamma(2, x), (_P + np.float32(0.5),)),
    "jsp.special.sph_harm_y": (
        lambda t, p: _SPECIAL.sph_harm_y(jnp.array([2]), jnp.array([1]), t, p, n_max=3),
        (positive(1), positive(1)),
    ),
    "jsp.special.wofz": (_SPECIAL.wofz, (complexes(4, 5),)),
}

SIGNAL: Final[Mapping[str, Case]] = {
    **each("jsp.signal", jax.scipy.signal, "convolve correlate fftconvolve", _V, values(3)),
    **each("jsp.signal", jax.scipy.signal, "convolve2d correlate2d", values(5, 6), values(3, 2)),
    "jsp.signal.detrend": (jax.scipy.signal.detrend, (values(4, 8),)),
    "jsp.signal.csd": (lambda x, y: jax.scipy.signal.csd(x, y, nperseg=8)[1], (values(32), positive(32))),
    "jsp.signal.welch": (lambda x: jax.scipy.signal.welch(x, nperseg=8)[1], (values(32),)),
    "jsp.signal.stft": (lambda x: jax.scipy.signal.stft(x, nperseg=8)[2], (values(32),)),
    "jsp.signal.istft": (
        lambda x: jax.scipy.signal.istft(jax.scipy.signal.stft(x, nperseg=8)[2], nperseg=8)[1],
        (values(32),),
    ),
    "jsp.ndimage.map_coordinates": (
        lambda x, a, b: jax.scipy.ndimage.map_coordinates(x, [a, b], order=1, mode="nearest"),
        (_X, positive(6), positive(6)),
    ),
    "jsp.cluster.vq.vq": (jax.scipy.cluster.vq.vq, (values(6, 3), positive(4, 3))),
    "jsp.integrate.trapezoid": (jax.scipy.integrate.trapezoid, (_X,)),
    "jsp.sparse.linalg.cg": (lambda a, b: jax.scipy.sparse.linalg.cg(a, b)[0], (_SPD, values(4))),
    "jsp.sparse.linalg.bicgstab": (lambda a, b: jax.scipy.sparse.linalg.bicgstab(a, b)[0], (_A, values(4))),
    "jsp.sparse.linalg.gmres": (
        lambda a, b: jax.scipy.sparse.linalg.gmres(a, b, restart=4, maxiter=3, solve_method="batched")[0],
        (_A, values(4)),
    ),
}

_STATS: Final = jax.scipy.stats
_Q: Final = np.abs(_U) * np.float32(0.9) + np.float32(0.05)
_DISTRIBUTIONS: Final[Mapping[str, tuple[tuple[Array, ...], str]]] = {
    "bernoulli": (
        (np.array([[0.0, 1.0]] * 4, np.float32), np.array([[0.3], [0.5], [0.6], [0.9]], np.float32)),
        "cdf logpmf pmf",
    ),
    "beta": ((_Q, _P, _P[::-1]), "cdf logcdf logpdf logsf pdf sf"),
    "betabinom": ((np.floor(_P), whole(4, 5).astype(np.float32) + 4, _P, _P[::-1]), "logpmf pmf"),
    "binom": ((np.floor(_P), whole(4, 5).astype(np.float32) + 4, _Q), "logpmf pmf"),
    "cauchy": ((_X,), "cdf logcdf logpdf logsf pdf sf"),
    "chi2": ((_P, _P[::-1] + 1), "cdf logcdf logpdf logsf pdf sf"),
    "dirichlet": ((np.array([0.2, 0.3, 0.5], np.float32), positive(3)), "logpdf pdf"),
    "expon": ((_P,), "cdf logcdf logpdf logsf pdf sf"),
    "gamma": ((_P, _P[::-1]), "cdf logcdf logpdf logsf pdf sf"),
    "gennorm": ((_X, _P), "cdf logpdf pdf"),
    "geom": ((np.floor(_P) + 1, _Q), "logpmf pmf"),
    "gumbel_l": ((_X,), "cdf logcdf logpdf logsf pdf sf"),
    "gumbel_r": ((_X,), "cdf logcdf logpdf logsf pdf sf"),
    "laplace": ((_X,), "cdf logpdf pdf"),
    "logistic": ((_X,), "cdf logpdf pdf sf"),
    "multinomial": ((integers(1, 2, 1), integers(4)[0], np.array([0.2, 0.5, 0.3], np.float32)), "logpmf pmf"),
    "multivariate_normal": ((values(3, 4), values(4), _SPD), "logpdf pdf"),
    "nbinom": ((np.floor(_P), np.floor(_P[::-1]) + 1, _Q), "logpmf pmf"),
    "norm": ((_X,), "cdf logcdf logpdf logsf pdf sf"),
    "pareto": ((_P + 1, _P[::-1]), "cdf logcdf logpdf logsf pdf sf"),
    "poisson": ((np.floor(_P), _P[::-1]), "cdf logpmf pmf"),
    "t": ((_X, _P + 1), "logpdf pdf"),
    "truncnorm": ((_U, np.float32(-2), np.float32(2)), "cdf logcdf logpdf logsf pdf sf"),
    "uniform": ((_Q,), "cdf logpdf pdf"),
    "vonmises": ((_X, _P), "logpdf pdf"),
    "wrapcauchy": ((_P, _Q), "logpdf pdf"),
}
STATS: Final[Mapping[str, Case]] = {
    f"jsp.stats.{name}.{function}": (getattr(getattr(_STATS, name), function), arguments)
    for name, (arguments, functions) in _DISTRIBUTIONS.items()
    for function in functions.split()
} | {
    **{
        f"jsp.stats.{name}.{function}": (getattr(getattr(_STATS, name), function), (_Q,))
        for name, functions in {
            "cauchy": "isf ppf",
            "expon": "ppf",
            "gumbel_l": "ppf",
            "gumbel_r": "ppf",
            "logistic": "isf ppf",
            "norm": "isf ppf",
            "uniform": "ppf",
        }.items()
        for function in functions.split()
    },
    "jsp.stats.bernoulli.ppf": (_STATS.bernoulli.ppf, (_Q, _Q[::-1])),
    "jsp.stats.pareto.ppf": (_STATS.pareto.ppf, (_Q, _P)),
    "jsp.stats.poisson.entropy": (_STATS.poisson.entropy, (_P * 4,)),
    "jsp.stats.mode": (lambda x: tuple(_STATS.mode(x)), (whole(4, 5).astype(np.float32),)),
    "jsp.stats.rankdata": (_STATS.rankdata, (_V,)),
    "jsp.stats.sem": (_STATS.sem, (_X,)),
    "jsp.stats.gaussian_kde": (lambda x, p: _STATS.gaussian_kde(x)(p), (_V, values(4))),
}


def _random(name: str, *arguments: Any, **options: Any) -> Case:
    function = getattr(jax.random, name)
    return lambda key: function(jax.random.wrap_key_data(key), *arguments, **options), (_KEY,)


RANDOM: Final[Mapping[str, Case]] = {
    **{
        f"random.{name}": _random(name, shape=(3, 4))
        for name in words("cauchy exponential gumbel laplace logistic maxwell normal rademacher uniform bits lognormal")
    },
    **{
        f"random.{name}": _random(name, *arguments, shape=(3,))
        for name, arguments in {
            "beta": (1.5, 2.0),
            "chisquare": (3.0,),
            "f": (3.0, 5.0),
            "gamma": (1.5,),
            "generalized_normal": (1.5,),
            "geometric": (0.3,),
            "loggamma": (1.5,),
            "pareto": (2.0,),
            "rayleigh": (2.0,),
            "t": (3.0,),
            "wald": (1.5,),
            "bernoulli": (0.4,),
            "poisson": (4.0,),
            "binomial": (10.0, 0.4),
        }.items()
    },
    "random.ball": _random("ball", 3, shape=(2,)),
    "random.categorical": _random("categorical", np.log(np.array([0.1, 0.4, 0.5], np.float32)), shape=(5,)),
    "random.choice": _random("choice", 10, (4,), replace=False),
    "random.dirichlet": _random("dirichlet", np.array([1.0, 2.0, 3.0], np.float32)),
    "random.double_sided_maxwell": _random("double_sided_maxwell", 1.0, 2.0, (3,)),
    "random.multinomial": _random("multinomial", 10, np.array([0.2, 0.5, 0.3], np.float32)),
    "random.multivariate_normal": _random("multivariate_normal", np.zeros(4, np.float32), _SPD, method="cholesky"),
    "random.orthogonal": (
        lambda key: (lambda q: q @ q.T)(jax.random.orthogonal(jax.random.wrap_key_data(key), 4)),
        (_KEY,),
    ),
    "random.permutation": _random("permutation", 12),
    "random.randint": _random("randint", (5,), 0, 100),
    "random.triangular": _random("triangular", 0.0, 0.5, 1.0, shape=(3,)),
    "random.truncated_normal": _random("truncated_normal", -1.0, 1.5, (3,)),
    "random.weibull_min": _random("weibull_min", 1.5, 2.0, (3,)),
    "random.PRNGKey": (lambda x: jax.random.PRNGKey(7) + x, (np.uint32(0),)),
    "random.key": (lambda x: jax.random.key_data(jax.random.key(7)) + x, (np.uint32(0),)),
    "random.clone": (lambda k: jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(k))), (_KEY,)),
    "random.fold_in": (lambda k: jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(k), 3)), (_KEY,)),
    "random.split": (lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k), 3)), (_KEY,)),
    "random.key_data": (lambda k: jax.random.key_data(jax.random.wrap_key_data(k)), (_KEY,)),
    "random.wrap_key_data": (lambda k: jax.random.key_data(jax.random.wrap_key_data(k)) + 1, (_KEY,)),
}
NOT_RANDOM: Final = words("key_dtype key_impl")
"""Questions about types."""

SCIENCE: Final[Mapping[str, Case]] = {**FFT, **LINALG, **SPECIAL, **SIGNAL, **STATS, **RANDOM}
