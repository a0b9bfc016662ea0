"""``pumice.jit``: the decorator, and the package that is called as if it were it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Final, overload

from ..status import UnavailableError

if TYPE_CHECKING:
    from ..runtime import Device
    from .function import JitFunction

DEFAULT_CACHE_SIZE: Final = 128
"""Executables that a function keeps."""


@overload
def jit(
    function: Callable[..., object],
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    device: str | Device | None = None,
    cache_size: int = DEFAULT_CACHE_SIZE,
    tune: bool | float = False,
) -> JitFunction: ...


@overload
def jit(
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    device: str | Device | None = None,
    cache_size: int = DEFAULT_CACHE_SIZE,
    tune: bool | float = False,
) -> Callable[[Callable[..., object]], JitFunction]: ...


def jit(
    function: Callable[..., object] | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    device: str | Device | None = None,
    cache_size: int = DEFAULT_CACHE_SIZE,
    tune: bool | float = False,
) -> JitFunction | Callable[[Callable[..., object]], JitFunction]:
    """Makes a function of JAX run on a device of pumice.

    >>> @pumice.jit
    ... def step(x, w):
    ...     return jax.nn.relu(x @ w)
    >>> y = step(x, w)

    The function is traced by JAX once for each tree of arguments, shapes, dtypes and static values, and compiled; later
    calls run what was compiled.

    Args:
        function: what ``jax.jit`` takes; without one a decorator is returned.
        static_argnums, static_argnames: arguments that are part of the program, hashable; by position, by name. Where
            one is given the other is inferred, as ``jax.jit`` does.
        donate_argnums, donate_argnames: arguments whose memory results may take; their arrays are closed by the call.
        device: a URI as for ``pumice.open_device`` or an open device. Functions that are given the same URI, or none,
            share the device, so that arrays pass between them.
        cache_size: the most executables that are kept; the one that was not used for longest goes first.
        tune: measure on the device what may compute each kernel before a program is compiled, for at most so many
            seconds (True: 60), and keep what is fastest for later programs and processes. It needs the extra ``study``.

    Raises:
        UnavailableError: JAX is not installed, or is older than 0.6.
        InvalidArgumentError: ``device``, ``cache_size`` or ``tune`` is of the wrong type.
        TypeError, ValueError: what ``jax.jit`` says of the others.
    """
    try:
        from .function import JitFunction
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("jax", "jaxlib"):
            raise
        raise UnavailableError(
            f"pumice.jit needs JAX 0.6 or later, the extra `jax`, which cannot be imported ({error}): "
            "pip install 'pumice[jax]'"
        ) from None

    def decorate(function: Callable[..., object]) -> JitFunction:
        return JitFunction(
            function,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            device=device,
            cache_size=cache_size,
            tune=tune,
        )

    return decorate if function is None else decorate(function)


class CallablePackage(ModuleType):
    """The package ``pumice.jit``. An import of a submodule binds it to that name, where users call the function."""

    __call__ = staticmethod(jit)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(jit)
