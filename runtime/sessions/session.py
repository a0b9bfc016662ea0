"""Sessions: modules loaded together on one or several devices, and calls of their functions.

>>> session = pumice.Session()
>>> session.load("model.vmfb")
>>> y = session.call("module.predict", image)

Each session has its own module state. Sessions of one instance, or made with the same device, may pass arrays to each
other. The design, and the counterparts of IREE's session interface, are in docs/design/session.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.closeable import Closeable
from ...hal.buffer_view import BufferView
from ...hal.fence import Fence
from ...hal.programs.fence import HalFence
from ...status import ClosedError, FailedPreconditionError, IncompatibleError, InvalidArgumentError
from ...vm.execution.bytecode_module import BytecodeModule
from ...vm.execution.context import Context
from ...vm.execution.deadlines import await_source, deadline_after
from ...vm.execution.linker import Module as VmModule
from ...waits.wait_mode import WaitMode
from ..arrays.array import DeviceArray
from ..device import Device
from .instance import Instance
from .session_calls import SessionCalls
from .session_devices import CallTarget, SessionDevices
from .session_function import SessionFunction
from .session_modules import ModuleSource, builtin_modules, open_module, wrong_device
from .session_options import BUILTIN_MODULES, SessionOptions

if TYPE_CHECKING:
    from ...hal_vulkan.memory.allocator import Allocator
    from ..profiling.profile import Profile


class Session(SessionCalls, Closeable):
    """Modules loaded together on one or several devices, and calls of their functions.

    Calling sequence: ``Session(…)`` → ``load`` or ``append_module…``, imported modules first → ``call``, or ``lookup``
    once and call often → ``close``, or a ``with`` block. A session closes the devices that it opened, with all arrays
    on them; it opens devices only if it gets neither open devices nor an instance.

    Thread rule: one thread at a time, any thread; a second thread gets FailedPreconditionError. Several sessions may
    run concurrently. ``SessionOptions(concurrent=True)`` lets calls overlap where the program allows it.

    Args:
        device: a URI as for ``pumice.open_device``, an open device, or several of either; ``None`` takes the best
            device when the first program needs one.
        options: the options; see ``SessionOptions``.
        instance: the instance that shares devices with other sessions; without an instance, the session opens and
            closes its own devices.
        sanitize: whether to report wrong accesses of programs, as for ``pumice.open_device``. The reference device,
            which has no such accesses, ignores it.
        wait: the host's wait mode for its devices, as for ``pumice.open_device``; calls may use another mode.

    Raises:
        NotFoundError: there is no such device; the message lists those that exist.
        UnavailableError: there is no Vulkan loader or driver.
        ClosedError: the device or the instance was closed.
        InvalidArgumentError: an argument has the wrong type; or ``sanitize`` or ``wait`` differs from that of an open
            device.
    """

    def __init__(
        self,
        device: str | Device | Sequence[str | Device] | None = None,
        *,
        options: SessionOptions | None = None,
        instance: Instance | None = None,
        sanitize: bool | None = None,
        wait: WaitMode | None = None,
    ) -> None:
        for name, value, kind in (("options", options, SessionOptions), ("instance", instance, Instance)):
            if value is not None and not isinstance(value, kind):
                raise InvalidArgumentError(f"{name} is a pumice.{kind.__name__}, got {type(value).__name__}")
        if instance is not None and instance.is_closed:
            raise ClosedError("this instance was closed; make another one")
        self.options: SessionOptions = options or SessionOptions()
        self._memory = self.options.budget("max_memory", "device memory")
        self._devices = SessionDevices(device, instance, sanitize, wait)
        context = Context(
            max_stack_depth=self.options.max_stack_depth,
            concurrent=self.options.concurrent,
            kind="session",
            max_time=self.options.max_time,
            host_memory=self.options.budget("max_host_memory", "host memory"),
        )
        super().__init__(CallTarget(context, self._devices))
        self._profiling = threading.Lock()
        try:
            if device is not None:
                self._devices.open()
        except BaseException:
            self.close()
            raise

    # -- devices -------------------------------------------------------------------------------------

    @property
    def instance(self) -> Instance:
        """The instance that opens its devices."""
        return self._devices.instance

    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices, opened if necessary."""
        return self._devices.open()

    @property
    def device(self) -> Device:
        """Its first device, to which host arguments are copied."""
        return self._devices.first()

    def default_device(self) -> Device:
        """Returns ``device``, as a function."""
        return self._devices.first()

    @property
    def allocator(self) -> Allocator:
        """The allocator of the first device, a Vulkan device; its ``statistics()`` show the memory in use."""
        return self.device.vulkan.allocator

    @property
    def context(self) -> Context:
        """The VM context: modules, functions, hooks for traces and breakpoints."""
        return self._context

    # -- modules -------------------------------------------------------------------------------------

    def load(self, source: ModuleSource, *, timeout: float | None = None) -> BytecodeModule:
        """Loads a module and adds it to the session.

        Args:
            source: a path (the file is mapped: do not truncate it while the module is in use), ``"-"`` for standard
                input, bytes or another buffer (shared, not copied), or a binary file object.
            timeout: the seconds for the module's initializers; ``None`` means no limit.

        Returns:
            The module.

        Raises:
            NotFoundError: there is no such file, or an import is unresolved.
            InvalidArgumentError: the source is no module, or a damaged one.
            IncompatibleError: the version is unknown; the message lists the known ones.
            AlreadyExistsError: the session has a module of that name.
            FailedPreconditionError: the session is frozen, or in use by another thread.
            DeadlineExceededError: the initializers took too long.
            PumiceError: an initializer failed. The module is not added.
        """
        return self._append_new(open_module(source), timeout)

    def append_module_from_file(self, path: str | os.PathLike[str], *, timeout: float | None = None) -> BytecodeModule:
        """Maps a module file and adds it; see ``load``. The file may be renamed or deleted afterwards."""
        return self.load(Path(path), timeout=timeout)

    def append_module_from_memory(
        self, data: bytes | bytearray | memoryview, name: str = "<memory>", *, timeout: float | None = None
    ) -> BytecodeModule:
        """Adds a module from memory, which must not change while in use; see ``load``. ``name`` is for messages."""
        return self._append_new(BytecodeModule.from_bytes(data, name), timeout)

    def append_module_from_stdin(self, *, timeout: float | None = None) -> BytecodeModule:
        """Reads a module from standard input and adds it; see ``load``."""
        return self.load("-", timeout=timeout)

    def _append_new(self, module: BytecodeModule, timeout: float | None) -> BytecodeModule:
        try:
            self.append_module(module, timeout=timeout)
        except BaseException:
            module.close()
            raise
        return module

    def append_module(self, module: VmModule, *, timeout: float | None = None) -> None:
        """Adds a loaded module, or a module written in Python (``NativeModule``).

        Args:
            module: the module. It may be added to several sessions; each has its own state.
            timeout: the seconds for the module's initializers; ``None`` means no limit.

        Raises:
            FailedPreconditionError: the session is frozen, or in use by another thread.
            AlreadyExistsError, NotFoundError, IncompatibleError, DeadlineExceededError: the module cannot be added; see
                ``Context.add``.
        """
        self._check_open()
        if isinstance(module, BytecodeModule) and not self._context.is_frozen:
            for builtin in builtin_modules(module, self._context, self._devices, self.options, self._memory):
                self._context.add(builtin)
        observer = self._target.observer
        if observer is not None:
            observer.modules_changed()
        try:
            self._context.add(module, timeout=timeout)
            if observer is not None:
                observer.modules_changed()
        except IncompatibleError as error:
            hint = wrong_device(error, module.name, self._devices.opened)
            if hint is None:
                raise
            raise IncompatibleError(hint) from error

    @property
    def modules(self) -> tuple[VmModule, ...]:
        """The modules in the order of addition, including built-in modules."""
        return self._context.modules

    def functions(self, module_name: str | None = None) -> tuple[SessionFunction, ...]:
        """Returns the exported functions that a session can call.

        Args:
            module_name: the name of one module; ``None`` means all modules except the built-in ones.

        Raises:
            NotFoundError: there is no such module.
        """
        modules = [item.name for item in self._context.modules if item.name not in BUILTIN_MODULES]
        names = modules if module_name is None else [module_name]
        functions = [item for name in names for item in self._context.functions(name)]
        return tuple([self.lookup(item.full_name) for item in functions if not item.convention.is_variadic])

    def freeze(self) -> None:
        """Rejects further modules from now on; idempotent."""
        self._context.freeze()

    # -- profiles and fences -------------------------------------------------------------------------

    def profile(self, *, most_slowdown: float | None = 0.03) -> Profile:
        """Profiles all calls from now on: device time of each dispatch, and shares of the host's time.

        Args:
            most_slowdown: the share of the calls' time that timing may cost. The first milliseconds are timed in full.
                When the share is used up, dispatches are only counted and some calls have no shares. ``None`` times
                everything; the cost depends on the device and is highest on CPU devices.

        Returns:
            The profile, to be stopped: ``with session.profile() as profile: …``, or ``profile.stop()``. Then
            ``print(profile)``, or use ``dispatches``, ``exports``, ``calls``, ``write_json``, ``write_perfetto``.

        Raises:
            FailedPreconditionError: the session has a running profile.
            InvalidArgumentError: ``most_slowdown`` is not a number from 0 to 1.
            ClosedError: the session was closed.
        """
        from ..profiling.profile import Profile

        profile = Profile(most_slowdown, concurrent=self._context.concurrent)
        self.join_profile(profile)
        return profile

    def join_profile(self, profile: Profile) -> None:
        """Adds all calls from now on to a profile that another session began, or ``Profile(…)`` itself.

        Raises:
            FailedPreconditionError: the session has a running profile, or this one was stopped.
            ClosedError: the session was closed.
        """
        self._check_open()
        with self._profiling:
            if self._target.observer is not None:
                raise FailedPreconditionError("this session is being profiled already; stop() that profile first")
            profile.add(self._context, self._target.unobserve)
            self._target.observer = profile

    def await_fence(self, fence: Fence | HalFence, timeout: float | None = None) -> None:
        """Waits until a fence is reached.

        Raises:
            DeadlineExceededError: the time passed first.
            PumiceError: the fence failed; this is its failure.
        """
        if not isinstance(fence, (Fence, HalFence)):
            raise InvalidArgumentError(f"await_fence takes a fence, got {type(fence).__name__}")
        await_source(fence, deadline_after(timeout))

    def wrap_view(self, view: BufferView) -> DeviceArray | BufferView:
        """Returns the array of a program's view; the view itself if NumPy has no dtype for its elements."""
        return self._devices.wrap(view)

    # -- end -----------------------------------------------------------------------------------------

    def trim(self) -> None:
        """Frees caches: memory, recordings, pools. Call it before a pause.

        Raises:
            FailedPreconditionError: another thread is using the session.
        """
        with self._context.hold():
            for module in self._context.modules:
                trim: Callable[[], None] | None = getattr(self._context.module_state(module.name), "trim", None)
                if trim is not None:
                    trim()
            for device in self._devices.opened:
                device.hal.trim()

    def _check_open(self) -> None:
        if self._context.is_closed:
            raise ClosedError("this session was closed; make a new one")

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._context.is_closed

    def close(self) -> None:
        """Drops the modules' state and closes the devices that it opened; idempotent.

        Arrays on a device that the session opened are closed with it; give it an instance or a device to keep them.
        Unfinished asynchronous calls get AbortedError; a call inside a native function is waited for, some seconds at
        most.

        Raises:
            FailedPreconditionError: a call is running; close the session when it has returned.
        """
        observer = self._target.observer
        if observer is not None and self._context.is_idle():
            observer.remove(self._context)
        try:
            self._context.close()
        finally:
            if self._context.is_closed:
                self._functions.clear()
                self._devices.close()

    def __repr__(self) -> str:
        if self.is_closed:
            return "<closed Session>"
        names = ", ".join(item.name for item in self._context.modules) or "no modules"
        where = ", ".join(item.name for item in self._devices.opened) or "no device yet"
        return f"<Session of {names} on {where}{', frozen' if self._context.is_frozen else ''}>"
