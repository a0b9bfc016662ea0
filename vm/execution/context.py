"""Contexts: modules linked together, with state of their own; and the functions one can call in them.

Calling sequence: ``Context()``, ``add`` modules, those that are imported from first; ``lookup`` functions and ``invoke`` them; ``close``.
``add`` resolves a module's imports against the modules before it, makes its state and runs its ``__init``; ``close`` runs each ``__deinit``,
the last module's first. ``freeze`` ends adding.

Thread rule: one thread at a time, any thread, unless made ``concurrent``: then functions may be invoked from several threads
at once (the program's own state is then the program's to guard), but modules are still added by one. A native function may
invoke functions of the context that it is called in; what it invokes ends by the deadline of what called it, if there is one.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...status import (
    AbortedError,
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
)
from ..bytecode.declaration import declaration_of
from ..native.module import NativeModule
from .admission import Admission, Turn
from .bytecode_module import BytecodeModule, ModuleState
from .deadlines import deadlines, run_until_done, wait_for
from .function import Function
from .hooks import Hooks
from .linker import LoadedModule, Module, link, native_function, split_name
from .stack import DEFAULT_MAX_DEPTH, Stack

if TYPE_CHECKING:
    from .loop import Abortable, Loop

__all__ = ["Context"]

_log = logging.getLogger("pumice")

_INIT = "__init"
_DEINIT = "__deinit"
_making_loops = threading.Lock()
_LONGEST_STEP = 10.0  # seconds that close waits for a native function


class Context:
    """Modules linked together, with state of their own, and the functions one can call in them.

    Args:
        modules: added at once.
        max_stack_depth: most nested calls of an invocation.
        concurrent: whether invocations may overlap.
        kind: what messages call it; a session's context goes by the session.

    Raises:
        InvalidArgumentError: a ``max_stack_depth`` below 1; or as ``add``.
    """

    def __init__(
        self,
        modules: Iterable[Module] = (),
        *,
        max_stack_depth: int = DEFAULT_MAX_DEPTH,
        concurrent: bool = False,
        kind: str = "context",
    ) -> None:
        if isinstance(max_stack_depth, bool) or not isinstance(max_stack_depth, int) or max_stack_depth < 1:
            raise InvalidArgumentError(f"max_stack_depth is a number of frames, at least 1; got {max_stack_depth!r}")
        self.kind = kind
        self.hooks = Hooks()
        self.max_stack_depth = max_stack_depth
        self.concurrent = concurrent
        self._modules: dict[str, LoadedModule] = {}
        self._frozen = False
        self._closed = False
        self._owner: int | None = None
        self._depth = 0
        # Held by the thread that uses the context, as often as its invocations are nested; concurrent ones only count.
        self._use = threading.RLock()
        self.turns = Admission(self)
        self._loop: Loop | None = None
        self.invocations: set[Abortable] = set()
        """Asynchronous invocations that have not ended; for those."""
        try:
            for module in modules:
                self.add(module)
        except BaseException:
            self.close()
            raise

    # -- modules -------------------------------------------------------------------------------------

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules, in the order they were added."""
        return tuple(loaded.module for loaded in self._modules.values())

    @property
    def is_frozen(self) -> bool:
        """Whether no more modules can be added."""
        return self._frozen

    def freeze(self) -> None:
        """Ends the adding of modules; idempotent."""
        self._frozen = True

    def module_state(self, name: str) -> object:
        """The state of a module in this context: a ``ModuleState``, or what a native module's factory made.

        Raises:
            NotFoundError: no such module.
        """
        return self._loaded(name).state

    def add(self, module: Module, *, timeout: float | None = None) -> None:
        """Links a module and runs its initializers.

        Args:
            module: not added before.
            timeout: seconds for its initializers; ``None`` is for ever, which a module from an unknown source may take.

        Raises:
            InvalidArgumentError: it is no module.
            DeadlineExceededError: the initializers were not done in time; the module is not added.
            FailedPreconditionError: the context is frozen, or another thread is using it.
            AlreadyExistsError: a module of that name was added.
            NotFoundError: a required import, or a module that it depends on, is missing.
            IncompatibleError: a module is older than asked for, or a function has another calling convention.
            PumiceError: an initializer failed; the module is not added.
        """
        if not isinstance(module, (BytecodeModule, NativeModule)):
            raise InvalidArgumentError(f"a module is a BytecodeModule or a NativeModule, got {type(module).__name__}")
        self._acquire()
        try:
            self._add(module, timeout)
        finally:
            self._release()

    def _add(self, module: Module, timeout: float | None) -> None:
        if self._frozen:
            raise FailedPreconditionError(
                f"cannot add module {module.name!r}: this {self.kind} is frozen; add modules before freeze()"
            )
        if module.name in self._modules:
            raise AlreadyExistsError(
                f"this {self.kind} has a module {module.name!r} already; one name can be added once"
            )
        if isinstance(module, NativeModule):
            self._modules[module.name] = LoadedModule(module, module.new_state())
            return
        imports, resolved = link(module, self._modules)
        state = ModuleState(module, self, imports, resolved)
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
            state.release()
            raise

    def _names(self) -> str:
        return ", ".join(repr(name) for name in self._modules) or "none"

    def _loaded(self, name: str) -> LoadedModule:
        loaded = self._modules.get(name)
        if loaded is None:
            raise NotFoundError(f"no module {name!r} in this context; there are {self._names()}")
        return loaded

    # -- functions -----------------------------------------------------------------------------------

    def lookup(self, full_name: str) -> Function:
        """The exported function ``module.function``.

        Raises:
            NotFoundError: no such module or function; the message names close ones.
            InvalidArgumentError: not a str.
        """
        self.check_open()
        if not isinstance(full_name, str):
            raise InvalidArgumentError(f"a function's full name is a str such as 'module.main', got {full_name!r}")
        loaded, name = split_name(full_name, self._modules)
        if loaded is None:
            near = [f"{module}.{full_name}" for module, one in self._modules.items() if full_name in one.module.exports]
            if not near:
                every = [f"{module}.{name}" for module, one in self._modules.items() for name in one.module.exports]
                near = difflib.get_close_matches(full_name, every, 3)
            raise NotFoundError(
                f"no function {full_name!r}: full names are module.function, and the modules are {self._names()}"
                + (f"; did you mean {' or '.join(near[:3])}?" if near else "")
            )
        return self._function(loaded, name)

    def functions(self, module_name: str) -> tuple[Function, ...]:
        """All exported functions of a module, initializers left out."""
        loaded = self._loaded(module_name)
        return tuple(self._function(loaded, name) for name in loaded.module.exports if name not in (_INIT, _DEINIT))

    def _function(self, loaded: LoadedModule, name: str) -> Function:
        found = loaded.functions.get(name)
        if found is not None:
            return found
        module = loaded.module
        if isinstance(module, NativeModule):
            overloads = module.find_export(name)
            if overloads:
                export = overloads[0]
                found = Function(self, module.name, name, export.convention, native=native_function(loaded, export))
        elif name in module.exports:
            ordinal = module.exports[name]
            assert isinstance(loaded.state, ModuleState)
            signature = module.definition.signatures[ordinal]
            found = Function(
                self,
                module.name,
                name,
                module.verified.functions[ordinal].signature,
                signature.attributes,
                declaration_of(signature),
                bytecode=loaded.state.function(ordinal),
            )
        if found is None:
            names = [one for one in module.exports if not one.startswith("__")]
            near = difflib.get_close_matches(name, names, 3)
            shown = near or names[:10]
            raise NotFoundError(
                f"module {module.name!r} has no function {name!r}; {'close to it' if near else 'it has'}: {', '.join(shown) or 'none'}"
            )
        loaded.functions[name] = found
        return found

    # -- invocation ----------------------------------------------------------------------------------

    def stack_for(self, function: Function, arguments: tuple[Any, ...]) -> Stack:
        """A stack with a function entered, to be stepped by the caller.

        The arguments are not checked: they are as many and of the kinds that the calling convention says.
        """
        stack = Stack(self.max_stack_depth)
        if function.bytecode is not None:
            stack.enter(function.bytecode, arguments)
        else:
            assert function.native is not None
            stack.enter_native(function.full_name, function.native, arguments)
        return stack

    def invoke(self, function: Function, arguments: tuple[Any, ...], *, timeout: float | None = None) -> Any:
        """Calls a function and waits until it is done.

        Args:
            function: of this context.
            arguments: one a calling-convention element: ints, floats, references; not checked.
            timeout: seconds for the whole call, waits included; ``None`` is for ever. One that is not positive has passed already:
                the call ends where it first loops or waits.

        Returns:
            ``None``, the result, or a tuple of several.

        Raises:
            InvalidArgumentError: a timeout that is no number.
            DeadlineExceededError: the time passed; everything of the invocation is released.
            FailedPreconditionError: another thread is using the context, or the function is of another one.
            PumiceError: what the program failed with.
        """
        if function.context is not self:
            raise FailedPreconditionError(f"{function.full_name} is a function of another context")
        self._acquire()
        try:
            stack = self.stack_for(function, arguments)
            if timeout is None and not deadlines:
                try:
                    while not stack.step():
                        wait = stack.wait_frame
                        if wait is not None:
                            wait_for(stack, wait, None)
                except BaseException:
                    stack.abort()
                    raise
            else:
                run_until_done(stack, function.full_name, timeout)
            return stack.results
        finally:
            self._release()

    def _acquire(self) -> None:
        """Takes the context for this thread; nested invocations of one thread are fine."""
        if self.concurrent:
            with self._use:
                self.check_open()
                self._owner = threading.get_ident()
                self._depth += 1
            return
        if not self._use.acquire(False):
            raise FailedPreconditionError(
                f"this {self.kind} is in use by thread {_thread_name(self._owner)}: use it from one thread at a time (hold a lock, or "
                f"make one {self.kind} a thread), or make it with {self.concurrent_option}"
            )
        if self._closed or (self.turns.holder is not None and not self._depth):
            self._use.release()
            if self.turns.waiting:  # the turn may have come meanwhile, and found the context in this thread's hands
                self.turns.admit()
            self.check_open()
            raise FailedPreconditionError(
                f"an invocation of this {self.kind} is under way, suspended or about to run: end or await it, wait for a turn "
                f"with an asynchronous call, or make the {self.kind} with {self.concurrent_option}"
            )
        self._owner = threading.get_ident()
        self._depth += 1

    def _release(self) -> None:
        if self.concurrent:
            with self._use:
                self._depth -= 1
            return
        self._depth -= 1
        self._use.release()
        if self.turns.waiting:
            self.turns.admit()

    @property
    def concurrent_option(self) -> str:
        """How one is made concurrent, for messages."""
        return "options=SessionOptions(concurrent=True)" if self.kind == "session" else "concurrent=True"

    def begin_step(self) -> None:
        """Takes the context for a step of an invocation whose turn it is. ``end_step`` follows.

        Raises:
            ClosedError: it was closed.
        """
        # Whoever else has it only looks whether it is free.
        self._use.acquire()
        if self._closed:
            self._use.release()
            self.check_open()
        self._owner = threading.get_ident()
        self._depth += 1
        if self.concurrent:
            self._use.release()

    def end_step(self) -> None:
        """Gives the context back after ``begin_step``."""
        if self.concurrent:
            self._use.acquire()
        self._depth -= 1
        self._use.release()

    def is_idle(self) -> bool:
        """Whether no thread is in a function of the context, one call after another."""
        if not self._use.acquire(False):
            return False
        try:
            return not self._depth
        finally:
            self._use.release()

    def give_to(self, turn: Turn) -> bool:
        """Makes an invocation the holder if nobody uses the context; whether it did. For ``Admission``."""
        if self.concurrent:
            self.turns.holder = turn
            return True
        # With the context in hand: no synchronous call gets in between.
        if not self._use.acquire(False):
            return False
        try:
            if self._depth:
                return False
            self.turns.holder = turn
            return True
        finally:
            self._use.release()

    def is_running_here(self) -> bool:
        """Whether this thread is in a function of a context that is not concurrent."""
        return not self.concurrent and self._depth > 0 and self._owner == threading.get_ident()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other threads out, as a call does, for what must not happen while a function runs elsewhere.

        Raises:
            FailedPreconditionError: another thread is using the context.
            ClosedError: it was closed.
        """
        self._acquire()
        try:
            yield
        finally:
            self._release()

    @property
    def loop(self) -> Loop:
        """Where asynchronous invocations of the context run that name no other loop: a thread, started by the first."""
        if self._loop is None or self._loop.is_closed:
            from .loop import ThreadLoop

            with _making_loops:  # not the context's own: another thread may be in a long call
                self.check_open()
                if self._loop is None or self._loop.is_closed:
                    self._loop = ThreadLoop(f"pumice-{self.kind}")
        return self._loop

    # -- end -----------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises ClosedError if it was closed."""
        if self._closed:
            raise ClosedError(f"this {self.kind} was closed")

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self, *, timeout: float | None = None) -> None:
        """Runs the modules' ``__deinit`` and drops their state, the last module's first; idempotent.

        Asynchronous invocations that have not ended get AbortedError. A ``__deinit`` that fails, or is not done in time, is logged, and
        the others run all the same.

        Args:
            timeout: seconds for each ``__deinit``; ``None`` is for ever, which a module from an unknown source may take.

        Raises:
            FailedPreconditionError: a function is being called, in this thread or another, or an invocation that was begun in stages is in flight; close when
                it has ended.
            BaseException: what a native module's state raised in its ``close``, once everything is released.
        """
        if self._closed:
            return
        if self.invocations:
            self._abort_invocations()
        if not self._use.acquire(False):
            raise self._in_use()
        try:
            if self.is_closed:  # by another thread, meanwhile
                return
            if self._depth:
                raise self._in_use()
            if self.turns.in_flight:
                count = self.turns.in_flight
                raise FailedPreconditionError(
                    f"{count} invocation{'s' * (count != 1)} of this {self.kind} {'are' if count != 1 else 'is'} in flight: end, await, cancel "
                    "or abort them before close"
                )
            try:
                for loaded in reversed(self._modules.values()):
                    self._deinitialize(loaded, timeout)
            finally:
                self._closed = True
                self._release_states()
                if self._loop is not None:
                    self._loop.close()
        finally:
            self._use.release()
            if self.turns.waiting:  # as in _acquire
                self.turns.admit()

    def _abort_invocations(self) -> None:
        """Ends the asynchronous invocations; those in the middle of a step are waited for a little."""
        error = AbortedError(f"this {self.kind} was closed before the invocation was done")
        for one in list(self.invocations):
            one.abort(error)
        until = time.monotonic() + _LONGEST_STEP
        while self.turns.in_flight and self._depth and not self.is_running_here() and time.monotonic() < until:
            time.sleep(0.001)

    def _in_use(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"this {self.kind} is in use by thread {_thread_name(self._owner)}; close it when its calls have returned"
        )

    def _deinitialize(self, loaded: LoadedModule, timeout: float | None) -> None:
        if isinstance(loaded.module, BytecodeModule) and _DEINIT in loaded.module.exports:
            function = self._function(loaded, _DEINIT)
            if function.convention.arguments:
                return
            try:
                self.invoke(function, (), timeout=timeout)
            except PumiceError as error:
                _log.warning("%s failed, and what it was to release may not be: %s", function.full_name, error)

    def _release_states(self) -> None:
        failure: BaseException | None = None
        while self._modules:
            _, loaded = self._modules.popitem()
            try:
                if isinstance(loaded.state, ModuleState):
                    loaded.state.release()
                else:
                    close = getattr(loaded.state, "close", None)
                    if close is not None:
                        close()
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed " if self._closed else "frozen " if self._frozen else ""
        return f"<{state}Context of {self._names()}>"


def _thread_name(ident: int | None) -> str:
    for thread in threading.enumerate():
        if thread.ident == ident:
            return repr(thread.name)
    return str(ident)
