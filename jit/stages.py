"""The stages of a function, as in ``jax.jit``: lowered to a program, compiled to an executable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..base.closeable import Closeable
from ..base.notebook import without_process
from ..compiler.ir.source import CompileError
from ..compiler.module_cache import compile_once
from ..compiler.origin import Origin
from ..runtime import Device, DeviceArray, Session, SessionFunction, SessionOptions
from ..runtime.profiling.profile import Profile
from ..vm.assembly.disassembler import disassemble_module
from .devices import shared_device, target_for
from .leaves import host_argument, is_key, leaf_key, leaf_spec, result_converter
from .places import in_python, name_of, with_place


class Stage:
    """The arguments and results of a stage, as in JAX's own stages.

    Attributes:
        in_tree, out_tree: the trees of arguments and of results; arguments are ``(args, kwargs)`` without static ones.
        in_avals, args_info: the shapes and dtypes of arguments; the latter marks donated arguments.
        out_info: the shapes and dtypes of results.
    """

    def __init__(self, lowered: jax.stages.Lowered) -> None:
        self.in_tree: Any = lowered.in_tree
        self.out_tree: Any = lowered.out_tree
        self.in_avals: Any = lowered.in_avals
        self.args_info: Any = lowered.args_info
        self.out_info: Any = lowered.out_info


class Lowered(Stage):
    """A function traced for some arguments; made by ``JitFunction.lower``.

    Attributes:
        jax: JAX's own stage.
    """

    def __init__(
        self,
        lowered: jax.stages.Lowered,
        function: Callable[..., object],
        wanted: str | Device | None,
        tune: bool | float = False,
    ) -> None:
        """Keeps the trace. ``wanted`` is the device to compile for, opened by ``compile``; ``tune`` is as for
        ``pumice.jit``.
        """
        super().__init__(lowered)
        self.jax = lowered
        self._function = function
        self._wanted = wanted
        self._tune = tune

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Returns the program, StableHLO by default; with ``debug_info``, operations have their places in the Python
        source.
        """
        return self.jax.as_text(dialect, debug_info=debug_info)

    def compile(self) -> Compiled:
        """Compiles the program for the function's device, or takes the executable from the cache on disk.

        The cache's key is the program, including the places in the Python source that errors name.

        Raises:
            CompileError: something in it is not supported; the message has its place in the Python source.
            UnavailableError: tuning needs the extra ``study``, which is not installed.
        """
        device = shared_device(self._wanted)
        data = without_process(with_place(self.as_text(debug_info=True), self._function)).encode()
        name = name_of(self._function)
        try:
            target = target_for(device, data, name, self._tune)
            module = compile_once(data, name, Origin("hlo"), target)
        except CompileError as error:
            raise in_python(error, name) from None
        return Compiled(self.jax, module, device)


class Compiled(Stage, Closeable):
    """An executable on a device, in its own session.

    Thread rule: any thread.

    Attributes:
        module: the module file, as ``Session.load`` takes it.
        session: the session that it runs in.
        function: the function of the session.
        is_leaving: whether the stage has left the function's cache; set by the cache.
    """

    def __init__(self, lowered: jax.stages.Lowered, module: bytes, device: Device) -> None:
        # JAX's stage itself is not kept: it holds the program with all its constants.
        super().__init__(lowered)
        self._donated = [position for position, info in enumerate(jax.tree.leaves(self.args_info)) if info.donated]
        self.module = module
        self.is_leaving = False
        self._device = device
        self.session: Session = Session(device, options=SessionOptions(concurrent=True))
        try:
            self._loaded = self.session.load(module)
            self.function: SessionFunction = self.session.lookup(f"{self._loaded.name}.main")
        except BaseException:
            self.session.close()
            raise
        dtypes = [aval.dtype for aval in jax.tree.leaves(self.in_avals)]
        self._dtypes = [None if is_key(dtype) else dtype for dtype in dtypes]
        converters = [result_converter(info, device) for info in jax.tree.leaves(self.out_info)]
        self._converters = converters if any(converters) else None
        # An empty tuple is a tree of one node, too.
        is_leaf = jax.tree_util.treedef_is_leaf(self.out_tree) and len(converters) == 1
        self._is_one_array = self._converters is None and is_leaf

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs it with the arguments that it was lowered for, without static arguments.

        Raises:
            TypeError: an argument has another tree, shape or dtype.
        """
        return self.run(self._checked(args, kwargs))

    async def call_async(self, *args: object, **kwargs: object) -> Any:
        """Calls it from a coroutine; see ``SessionFunction.call_async``."""
        return await self.run_async(self._checked(args, kwargs))

    def _checked(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[object]:
        leaves, tree = jax.tree.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(f"expected arguments in the tree {self.in_tree}, which was lowered, got {tree}")
        for (path, aval), leaf in zip(jax.tree_util.tree_leaves_with_path(self.in_avals), leaves, strict=True):
            leaf_key(leaf)
            given_aval = jax.typeof(leaf_spec(leaf))
            if (given_aval.shape, given_aval.dtype) != (aval.shape, aval.dtype):
                where = jax.tree_util.keystr(path)
                raise TypeError(
                    f"argument{where}: expected {aval.str_short()}, which was lowered, got {given_aval.str_short()}"
                )
        return leaves

    def run(self, leaves: Sequence[object]) -> Any:
        """Calls it with the leaves of its arguments, which are not checked."""
        if self._donated:
            return self._results(self.function(*self._values(leaves), donate=self._given(leaves)))
        return self._results(self.function(*self._values(leaves)))

    async def run_async(self, leaves: Sequence[object]) -> Any:
        """Runs it from a coroutine; see ``run``."""
        values = self._values(leaves)
        return self._results(await self.function.call_async(*values, donate=self._given(leaves) or None))

    def _given(self, leaves: Sequence[object]) -> tuple[int, ...]:
        """Returns the donated arguments that are arrays on the device; the memory of JAX and NumPy stays theirs."""
        return tuple([position for position in self._donated if type(leaves[position]) is DeviceArray])

    def _values(self, leaves: Sequence[object]) -> list[DeviceArray | np.ndarray]:
        return [
            leaf if type(leaf) is DeviceArray else host_argument(leaf, dtype, self._device)
            for leaf, dtype in zip(leaves, self._dtypes, strict=True)
        ]

    def _results(self, results: Any) -> Any:
        if self._is_one_array:
            return results
        leaves = results if isinstance(results, tuple) else () if results is None else (results,)
        if self._converters is not None:
            pairs = zip(self._converters, leaves, strict=True)
            leaves = tuple([leaf if convert is None else convert(leaf) for convert, leaf in pairs])
        return self.out_tree.unflatten(leaves)

    def as_text(self) -> str:
        """Returns the module as VM assembly."""
        return disassemble_module(self._loaded.verified)

    def profile(self, *, most_slowdown: float | None = 0.03) -> Profile:
        """Profiles all calls from now on; see ``Session.profile``."""
        return self.session.profile(most_slowdown=most_slowdown)

    @property
    def is_closed(self) -> bool:
        return self.session.is_closed

    def close(self) -> None:
        """Frees its memory on the device; its results stay open. Idempotent.

        Raises:
            FailedPreconditionError: a call is running.
        """
        self.session.close()
