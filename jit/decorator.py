"""``pumice.jit``: the decorator, and the class that makes the package callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, overload

from ..status import UnavailableError

if TYPE_CHECKING:
    from ..runtime import Device
    from .function import JitFunction

DEFAULT_CACHE_SIZE: Final = 128
"""The number of executables that a function keeps."""


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
    """Compiles a JAX function for a device of pumice.

    >>> @pumice.jit
    ... def step(x, w):
    ...     return jax.nn.relu(x @ w)
    >>> y = step(x, w)

    JAX traces the function once for each tree of arguments, shapes, dtypes and static values, and pumice compiles the
    trace. Later calls run the compiled program.

    Args:
        function: the function, as for ``jax.jit``; without it, ``jit`` returns a decorator.
        static_argnums, static_argnames: the hashable arguments that are part of the program, by position or by name. If
            one of the two is given, the other is inferred, as ``jax.jit`` does.
        donate_argnums, donate_argnames: the arguments whose memory results may take; the call closes their arrays.
        device: a URI as for ``pumice.open_device``, or an open device. Functions with the same URI, or with none, share
            the device, so arrays can be passed from one to another.
        cache_size: the largest number of executables that are kept; the least recently used goes first.
        tune: the time in seconds (True: 60) to measure on the device, before a program is compiled, which strategy
            computes each kernel fastest. The result is kept for later programs and processes. Needs the extra
            ``study``.

    Raises:
        UnavailableError: JAX is not installed, or is older than 0.6.
        InvalidArgumentError: ``device``, ``cache_size`` or ``tune`` has the wrong type.
        TypeError, ValueError: ``jax.jit`` refuses another argument.
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
    """The class of the package ``pumice.jit``, whose name users call as a function."""

    __call__: Callable[..., Any] = staticmethod(jit)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(jit)
