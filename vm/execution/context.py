"""Contexts: modules linked together, with their own state, and the functions that can be called in them.

Calling sequence: ``Context()``; ``add`` modules, imported modules first; ``lookup`` functions and ``invoke`` them;
``close``. ``add`` resolves a module's imports against the previous modules, makes its state and runs its ``__init``;
``close`` runs each ``__deinit``, the last module's first. ``freeze`` ends adding.

Thread rule: one thread at a time, any thread, unless made ``concurrent``: then functions may be invoked from several
threads at once (the program must guard its own state), but only one thread may add modules. A native function may
invoke functions of its own context; such an invocation ends by its caller's deadline.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ...base.closeable import Closeable
from ...base.lazy_dataclass import dataclass
from ...status import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
)
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.declaration import FunctionDeclaration, declaration_of
from ..native.module import NativeModule
from .admission import CLOSED, ContextGate
from .bytecode_module import BytecodeModule
from .deadlines import timeout_seconds
from .linker import LoadedModule, Module, find_function, link, names_of, native_function, unknown_export
from .module_state import ContextFunction, Hooks, ModuleState
from .run import Run, call
from .stack import DEFAULT_MAX_DEPTH, Stack

if TYPE_CHECKING:
    from ...base.memory_budget import MemoryBudget, Share
    from .loop import Loop

_log = logging.getLogger("pumice")

_INIT: Final = "__init"
_DEINIT: Final = "__deinit"
_MAX_END_WAIT: Final = 10.0  # seconds that close waits for invocations in other threads
_loop_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function:
    """An exported function of a module in a context; ``Context.lookup`` makes it, one for each export.

    Attributes:
        context: the context.
        module_name, name: the names of the module and the export.
        convention: the function's calling convention.
        attributes: the reflection attributes; empty for native functions.
        declaration: the types of the source program, if the module has them.
        bytecode: the function of a bytecode module, bound to the context.
        native: the Python function of a native module, bound to its state.
    """

    context: Context
    module_name: str
    name: str
    convention: CallingConvention
    attributes: Mapping[str, str] = field(default_factory=dict)
    declaration: FunctionDeclaration | None = None
    bytecode: ContextFunction | None = None
    native: Callable[..., Any] | None = None

    @property
    def full_name(self) -> str:
        """Returns ``module.function``."""
        return f"{self.module_name}.{self.name}"

    def __repr__(self) -> str:
        return f"<Function {self.full_name} {self.convention.text}>"


class Context(Closeable):
    """Modules linked together, with their own state, and the functions that can be called in them.

    Args:
        max_stack_depth: the largest number of nested calls of an invocation.
        concurrent: whether invocations may overlap.
        kind: the name of its kind in messages, such as "session".
        max_time: the longest time of a call in seconds, whatever its timeout; ``None`` means no limit.
        host_memory: the budget of the buffers, lists and globals of its programs; ``None`` means no limit.

    Attributes:
        hooks: the functions called at traces and breakpoints of programs.
        is_frozen: whether no more modules can be added.
        gate: the gate that keeps invocations apart.
        invocations: the asynchronous invocations that have not ended.

    Raises:
        InvalidArgumentError: ``max_stack_depth`` is below 1; or as from ``add``.
    """

    def __init__(
        self,
        modules: Iterable[Module] = (),
        *,
        max_stack_depth: int = DEFAULT_MAX_DEPTH,
        concurrent: bool = False,
        kind: str = "context",
        max_time: float | None = None,
        host_memory: MemoryBudget | None = None,
    ) -> None:
        if isinstance(max_stack_depth, bool) or not isinstance(max_stack_depth, int) or max_stack_depth < 1:
            raise InvalidArgumentError(f"max_stack_depth is a number of frames, at least 1; got {max_stack_depth!r}")
        self.kind = kind
        self.hooks: Hooks = Hooks()
        self.max_stack_depth = max_stack_depth
        self.concurrent = concurrent
        self.max_time: float | None = None if max_time is None else timeout_seconds(max_time)
        self.host_memory: MemoryBudget | None = host_memory
        self._shares: list[Share] = []  # of globals
        self.gate: ContextGate = ContextGate(kind, concurrent=concurrent)
        self.invocations: set[Run] = set()
        self._modules: dict[str, LoadedModule] = {}
        self._functions: dict[tuple[LoadedModule, str], Function] = {}
        self._deinitialized: set[LoadedModule] = set()
        self.is_frozen: bool = False
        self._loop: Loop | None = None
        try:
            for module in modules:
                self.add(module)
        except BaseException:
            self.close()
            raise

    # -- modules -------------------------------------------------------------------------------------

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules, in the order of addition."""
        return tuple(loaded.module for loaded in self._modules.values())

    def freeze(self) -> None:
        """Rejects further modules from now on; idempotent."""
        self.is_frozen = True

    def module_state(self, name: str) -> object:
        """Returns a module's state in this context: a ``ModuleState``, or the result of a native module's factory."""
        return self._loaded(name).state

    def add(self, module: Module, *, timeout: float | None = None) -> None:
        """Links a module and runs its initializers.

        Args:
            module: a module that was not added before.
            timeout: the seconds for its initializers; ``None`` means no limit, which an untrusted module may never
                reach.

        Raises:
            DeadlineExceededError: the initializers were not done in time; the module is not added.
            FailedPreconditionError: the context is frozen, or another thread is using it.
            AlreadyExistsError: a module of that name was added.
            NotFoundError: a required import, or a module that it depends on, is missing.
            IncompatibleError: a module is older than requested, or a function has another calling convention.
            PumiceError: an initializer failed; the module is not added.
        """
        if not isinstance(module, (BytecodeModule, NativeModule)):
            raise InvalidArgumentError(f"a module is a BytecodeModule or a NativeModule, got {type(module).__name__}")
        with self.hold():
            if self.is_frozen:
                raise FailedPreconditionError(
                    f"cannot add module {module.name!r}: this {self.kind} is frozen; add modules before freeze()"
                )
            if module.name in self._modules:
                raise AlreadyExistsError(
                    f"this {self.kind} has a module {module.name!r} already; one name can be added once"
                )
            if isinstance(module, NativeModule):
                self._modules[module.name] = LoadedModule(module, module.new_state())
            else:
                self._add_bytecode(module, timeout)

    def _add_bytecode(self, module: BytecodeModule, timeout: float | None) -> None:
        share = None if self.host_memory is None else self.host_memory.share(module.definition.global_bytes)
        state = ModuleState(module, self.hooks, link(module, self._modules))
        loaded = LoadedModule(module, state)
        self._modules[module.name] = loaded
        try:
            if _INIT in module.exports:
                initializer = self._function(loaded, _INIT)
                if initializer.convention.arguments:
                    raise InvalidArgumentError(
                        f"{initializer.full_name} expected no arguments, got the calling convention "
                        f"{initializer.convention.text}: the module is damaged"
                    )
                self.invoke(initializer, (), timeout=timeout)
        except BaseException:
            del self._modules[module.name]
            self._functions.pop((loaded, _INIT), None)
            state.release()
            raise
        if share is not None:
            self._shares.append(share)

    def _loaded(self, name: str) -> LoadedModule:
        loaded = self._modules.get(name)
        if loaded is None:
            raise NotFoundError(f"no module {name!r} in this context; there are {names_of(self._modules)}")
        return loaded

    # -- functions -----------------------------------------------------------------------------------

    def lookup(self, full_name: str) -> Function:
        """Returns the exported function ``module.function``; raises NotFoundError, with similar names."""
        self.check_open()
        if not isinstance(full_name, str):
            raise InvalidArgumentError(f"a function's full name is a str such as 'module.main', got {full_name!r}")
        return self._function(*find_function(full_name, self._modules))

    def functions(self, module_name: str) -> tuple[Function, ...]:
        """Returns all exported functions of a module except its initializers."""
        loaded = self._loaded(module_name)
        return tuple(self._function(loaded, name) for name in loaded.module.exports if name not in (_INIT, _DEINIT))

    def _function(self, loaded: LoadedModule, name: str) -> Function:
        function = self._functions.get((loaded, name))
        if function is not None:
            return function
        module = loaded.module
        if name not in module.exports:
            raise unknown_export(module, name)
        if isinstance(module, NativeModule):
            export = module.find_export(name)[0]
            function = Function(self, module.name, name, export.convention, native=native_function(loaded, export))
        else:
            ordinal = module.exports[name]
            signature = module.definition.signatures[ordinal]
            assert isinstance(loaded.state, ModuleState)
            function = Function(
                self,
                module.name,
                name,
                module.signatures[ordinal],
                signature.attributes,
                declaration_of(signature),
                bytecode=loaded.state.function(ordinal),
            )
        return self._functions.setdefault((loaded, name), function)

    # -- invocation ----------------------------------------------------------------------------------

    def stack_for(self, function: Function, arguments: tuple[Any, ...]) -> Stack:
        """Returns a stack with a function entered, for the caller to step; the arguments are not checked."""
        if function.bytecode is not None:
            return Stack(self.max_stack_depth, function.bytecode, arguments)
        assert function.native is not None
        stack = Stack(self.max_stack_depth)
        stack.enter_native(function.full_name, function.native, arguments)
        return stack

    def limited(self, timeout: float | None) -> float | None:
        """Returns a timeout in seconds, or ``max_time`` if that is shorter."""
        if self.max_time is None:
            return timeout
        return self.max_time if timeout is None else min(timeout_seconds(timeout), self.max_time)

    def invoke(
        self, function: Function, arguments: tuple[Any, ...], *, timeout: float | None = None, blocks: bool = False
    ) -> Any:
        """Calls a function and waits until it is done.

        Args:
            function: a function of this context.
            arguments: the values, one for each element of the calling convention: ints, floats, references; not
                checked.
            timeout: the seconds for the whole call, including waits; ``None`` means no limit. A timeout that is not
                positive has already passed: the call ends where it first loops or waits.
            blocks: whether native functions may block, if the call's waits are not observed and there is no timeout.

        Returns:
            ``None``, the result, or a tuple of several results.

        Raises:
            InvalidArgumentError: the timeout is not a number.
            DeadlineExceededError: the time passed; all resources of the invocation are released.
            FailedPreconditionError: another thread is using the context, or the function belongs to another context.
            PumiceError: the program failed.
        """
        if function.context is not self:
            raise FailedPreconditionError(f"{function.full_name} is a function of another context")
        return call(Run(self, function, arguments, None, timeout, True, "block" if blocks else "suspend"))

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other threads out, like a call, during work that must not overlap with functions.

        Raises FailedPreconditionError if another thread is using the context, ClosedError if it was closed.
        """
        return self.gate.hold()

    def is_idle(self) -> bool:
        """Whether no thread is in a function of the context."""
        return self.gate.is_idle()

    @property
    def loop(self) -> Loop:
        """The loop of asynchronous invocations without a loop of their own: a thread, started by the first of them."""
        if self._loop is None or self._loop.is_closed:
            from .loop import ThreadLoop

            with _loop_lock:  # not the gate's: another thread may be in a long call
                self.check_open()
                if self._loop is None or self._loop.is_closed:
                    self._loop = ThreadLoop(f"pumice-{self.kind}")
        return self._loop

    # -- end -----------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises ClosedError if it was closed."""
        self.gate.check_open()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self.gate.is_closed

    def close(self, *, timeout: float | None = None) -> None:
        """Runs the modules' ``__deinit`` and drops their state, the last module's first; idempotent.

        Asynchronous invocations that have not ended get AbortedError. A ``__deinit`` that fails, or is not done in
        time, is logged, and the others still run.

        Args:
            timeout: the seconds for each ``__deinit``; ``None`` means no limit, which an untrusted module may never
                reach.

        Raises:
            FailedPreconditionError: a function is being called, in this thread or another, or a staged invocation is in
                flight; close when it has ended.
            BaseException: a native module's state raised it in its ``close``; everything is released first.
        """
        gate, closing = self.gate, object()
        if gate.is_released:
            return
        if self.invocations:
            self._abort_invocations()
        try:
            gate.begin_close(closing)
            if self.gate.is_released:  # released by another thread meanwhile
                return
            try:
                for loaded in reversed(self._modules.values()):
                    self._deinitialize(loaded, timeout)
            finally:
                try:
                    self._release_states()
                finally:
                    if self._loop is not None:
                        self._loop.close()
            gate.is_released = True
        finally:
            if gate.closing is closing:
                gate.closing, gate.closer, gate.is_closed = None, CLOSED, True

    def _abort_invocations(self) -> None:
        invocations = self.invocations.copy()
        error = AbortedError(f"this {self.kind} was closed before the invocation was done")
        for invocation in invocations:
            invocation.abort(error)
        self.gate.wait_until_ended(invocations, _MAX_END_WAIT)

    def _deinitialize(self, loaded: LoadedModule, timeout: float | None) -> None:
        if loaded in self._deinitialized:  # by an interrupted close
            return
        self._deinitialized.add(loaded)
        if isinstance(loaded.module, BytecodeModule) and _DEINIT in loaded.module.exports:
            function = self._function(loaded, _DEINIT)
            if function.convention.arguments:
                return
            try:
                self.invoke(function, (), timeout=timeout)
            except PumiceError as error:
                _log.warning("%s failed, and may not have released everything: %s", function.full_name, error)

    def _release_states(self) -> None:
        failure: BaseException | None = None
        self._functions.clear()
        self._shares.clear()
        for name in reversed(list(self._modules)):
            state = self._modules[name].state
            close = state.release if isinstance(state, ModuleState) else getattr(state, "close", None)
            try:
                if close is not None:
                    close()
            except BaseException as error:
                failure = failure or error
            del self._modules[name]
        if failure is not None:
            raise failure

    def __repr__(self) -> str:
        state = "closed " if self.is_closed else "frozen " if self.is_frozen else ""
        return f"<{state}Context of {names_of(self._modules)}>"
