"""JAX functions that run on a device of pumice."""

from __future__ import annotations

import asyncio
import functools
import math
import threading
from collections.abc import Callable, Hashable
from types import MethodType
from typing import Any

import jax
from jax._src.config import include_full_tracebacks_in_locations, trace_context

from ..runtime import Device
from ..runtime.profiling.profile import Profile
from ..status import FailedPreconditionError, InvalidArgumentError, shown
from .cache import CacheInfo, ExecutableCache
from .devices import check_device, shared_device
from .leaves import TracedError, as_traced, leaf_key, leaf_spec
from .parameters import Names, Nums, StaticParameters
from .places import name_of, refuse
from .stages import Compiled, Lowered


class JitFunction:
    """A function that JAX traces and pumice compiles and runs; made by ``pumice.jit``.

    It is traced once for each tree of arguments, shapes, dtypes and weak types, static values, and settings of JAX. Its
    results are DeviceArrays in the tree that the function returns. If it is called while JAX traces another function,
    it becomes part of that function.

    Thread rule: any thread.
    """

    __wrapped__: Callable[..., object]

    def __init__(
        self,
        function: Callable[..., object],
        *,
        static_argnums: Nums,
        static_argnames: Names,
        donate_argnums: Nums,
        donate_argnames: Names,
        device: str | Device | None,
        cache_size: int,
        tune: bool | float,
    ) -> None:
        check_device(device)
        if not isinstance(tune, bool | int | float) or not 0 <= tune < math.inf:
            raise InvalidArgumentError(f"tune is True, False or a number of seconds, got {shown(tune)}")
        functools.update_wrapper(self, function)
        self._jax: Any = jax.jit(  # JAX's type for it lacks in_tree and clear_cache
            function,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=True,
        )
        self._static = StaticParameters(function, static_argnums, static_argnames)
        self._name = name_of(function)
        self._wanted = device
        self._tune = tune
        self._cache = ExecutableCache(cache_size)
        self._making = threading.Lock()
        self._profile: Profile | None = None

    # -- calls ---------------------------------------------------------------------------------------

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Runs the function and waits for its results.

        Args:
            args, kwargs: the static values, and trees of DeviceArrays, arrays of JAX and NumPy, and Python numbers.
                Arrays on the function's device are passed without a copy.

        Raises:
            CompileError: something in the function is not supported; the message has its place in the Python source.
            InvalidArgumentError: an array is on another device.
            TypeError: JAX cannot trace an argument.
            PumiceError: the program failed.
        """
        try:
            leaves, key = self._key(args, kwargs)
            executable = self._cache.acquire(key) or self._compiled(key, self.lower(*args, **kwargs))
        except TracedError:
            return self._jax(*jax.tree.map(as_traced, args), **jax.tree.map(as_traced, kwargs))
        try:
            return executable.run(leaves)
        finally:
            self._cache.release(executable)

    async def call_async(self, /, *args: object, **kwargs: object) -> Any:
        """Runs the function from a coroutine. The event loop's thread traces, but neither compiles nor waits."""
        leaves, key = self._key(args, kwargs)
        while (executable := self._cache.acquire(key)) is None:
            await asyncio.to_thread(self._keep, key, self.lower(*args, **kwargs))
        try:
            return await executable.run_async(leaves)
        finally:
            self._cache.release(executable)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _key(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[list[object], Hashable]:
        """Returns the leaves of the arguments that are not static, and the key of the trace."""
        fixed: Hashable = None
        if self._static:
            args, kwargs, fixed = self._without_static(args, kwargs)
        leaves, tree = jax.tree.flatten((args, kwargs))
        return leaves, (tree, fixed, trace_context(), *map(leaf_key, leaves))

    def _without_static(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object], Hashable]:
        static, names = [self._static.has(position, len(args)) for position in range(len(args))], self._static.names
        fixed = [(position, type(argument), argument) for position, argument in enumerate(args) if static[position]]
        named = sorted((name, type(argument), argument) for name, argument in kwargs.items() if name in names)
        for where, kind, value in (*fixed, *named):
            if kind.__hash__ is None:
                raise InvalidArgumentError(
                    f"{self._name}: static argument {where!r} must be hashable, got {kind.__name__} {shown(value)}"
                )
        args = tuple([argument for position, argument in enumerate(args) if not static[position]])
        return args, {name: argument for name, argument in kwargs.items() if name not in names}, (*fixed, *named)

    # -- executables ---------------------------------------------------------------------------------

    def _compiled(self, key: Hashable, lowered: Lowered) -> Compiled:
        """Returns the executable for a key, acquired; compiles it if there is none."""
        with self._making:  # another thread may be compiling the same program
            executable = self._cache.acquire(key)
            if executable is None:
                executable = lowered.compile()
                if self._profile is not None and self._profile.is_running:
                    executable.session.join_profile(self._profile)
                self._cache.put(key, executable)
            return executable

    def _keep(self, key: Hashable, lowered: Lowered) -> None:
        """Compiles the executable for a key into the cache, even if the caller is cancelled meanwhile."""
        self._cache.release(self._compiled(key, lowered))

    def lower(self, /, *args: object, **kwargs: object) -> Lowered:
        """Traces the function for arguments, or for ``jax.ShapeDtypeStruct`` in place of arrays.

        Raises: as a call, except for errors of compiling and running.
        """
        dynamic, named = list(args), dict(kwargs)
        for position, value in enumerate(args):
            if not self._static.has(position, len(args)):
                dynamic[position] = jax.tree.map(leaf_spec, value)
        for name, value in kwargs.items():
            if name not in self._static.names:
                named[name] = jax.tree.map(leaf_spec, value)
        traced = self._jax.trace(*dynamic, **named)
        if len(traced.jaxpr.in_avals) != len(jax.tree.leaves(traced.args_info)):  # it closes over a tracer
            raise TracedError
        refuse(traced.jaxpr.jaxpr)
        # Errors name one line. With full tracebacks each call site would make another program.
        with include_full_tracebacks_in_locations(False):
            return Lowered(traced.lower(lowering_platforms=("cpu",)), self.__wrapped__, self._wanted, self._tune)

    @property
    def device(self) -> Device:
        """The device that it runs on; opened by the first use."""
        return shared_device(self._wanted)

    def profile(self, *, most_slowdown: float | None = 0.03) -> Profile:
        """Profiles all calls from now on, of executables that are made later too; see ``Session.profile``.

        Raises:
            FailedPreconditionError: the function is being profiled already.
        """
        with self._making:
            if self._profile is not None and self._profile.is_running:
                raise FailedPreconditionError("this function is being profiled already; stop() that profile first")
            profile = Profile(most_slowdown, concurrent=True)
            for executable in self._cache.executables:
                executable.session.join_profile(profile)
            self._profile = profile
            return profile

    def cache_info(self) -> CacheInfo:
        """Returns the numbers of calls that found an executable, of executables made, and of executables kept."""
        return self._cache.info

    def clear_cache(self) -> None:
        """Forgets all traces and closes all executables; one that is running is closed when its calls end."""
        self._jax.clear_cache()
        self._cache.clear()

    def __repr__(self) -> str:
        return f"<pumice.jit of {self._name}>"
