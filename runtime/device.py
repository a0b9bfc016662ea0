"""The device as users see it: arrays and kernels, on top of the HAL.

Everything given to a device runs in the order it was given; calls return before the device is done, and reading a
result waits for it. Thread rule: a device may be used from any thread.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from .. import hal_vulkan as hal
from ..hal_vulkan import CommandBuffer, DeviceProfile, DeviceType, MemoryTypeFlags, PlanOptions, SpecializationValue
from ..status import InvalidArgumentError
from .arrays.array import ArrayLike, DeviceArray, check_dtype, check_shape, check_timeout, raw_bytes
from .kernels.kernel import Kernel
from .kernels.shader_source import load_shader

__all__ = ["Device", "list_devices", "open_device"]

_log = logging.getLogger("pumice")
# Coherent, as views of it (DeviceArray.map, DLPack) have no moment at which to flush or invalidate.
_MAPPED = (
    MemoryTypeFlags.DEVICE_LOCAL
    | MemoryTypeFlags.HOST_VISIBLE
    | MemoryTypeFlags.HOST_COHERENT
    | MemoryTypeFlags.HOST_CACHED
)
_STAGING = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE
_said_cpu = False


def list_devices(*, validation: bool | None = None) -> tuple[DeviceProfile, ...]:
    """What every Vulkan device of this machine is and can do, in the order of ``vulkan://<index>``.

    Raises:
        UnavailableError: no Vulkan loader; the message says what to install.
    """
    return hal.shared_driver(validation=validation).profiles


def open_device(
    uri: str | None = None,
    *,
    validation: bool | None = None,
    staging: bool | None = None,
    robust: bool = False,
    persistent_cache: bool = True,
) -> Device:
    """Opens a device.

    Args:
        uri: ``"vulkan"`` (the best: discrete, integrated, virtual, CPU), ``"vulkan://1"`` (an index),
            ``"vulkan://GPU-<uuid>"``, ``"vulkan://<part of the name>"`` or ``"lavapipe"``. ``None`` asks the environment
            variable ``PUMICE_DEVICE``, then takes the best, and says once if that is a CPU.
        validation: turn the Khronos validation layers on; ``None`` asks ``PUMICE_VALIDATION``.
        staging: copy through staging memory as on discrete GPUs (``True``) or map device memory (``False``); ``None``
            takes what suits the device.
        robust: bound every access of a kernel to the arrays it was given (Vulkan's ``robustBufferAccess``), so that a
            kernel with an index error reads zeros instead of other memory or crashing the driver. It costs some speed.
        persistent_cache: keep compiled pipelines on disk.

    Raises:
        NotFoundError: no such device; the message lists those that exist. Another one is never taken in its place.
        UnavailableError: no Vulkan loader or driver; the message says what to install.
    """
    driver = hal.shared_driver(validation=validation)
    index = driver.select(uri)
    device = Device(
        hal.Device(
            driver,
            index,
            options=PlanOptions(staging=staging, robust_buffer_access=robust),
            persistent_cache=persistent_cache,
        )
    )
    if uri is None and not os.environ.get("PUMICE_DEVICE"):
        _say_cpu(device)
    return device


def _say_cpu(device: Device) -> None:
    global _said_cpu
    if device.profile.device_type is DeviceType.CPU and not _said_cpu:
        _said_cpu = True
        _log.warning(
            "no GPU was found: running on the CPU with %s. (Ask for it with device 'lavapipe' or PUMICE_DEVICE=lavapipe, "
            "and this is not said.)",
            device.name,
        )


class Device:
    """A Vulkan device with arrays and kernels.

    Calling sequence: ``open_device`` → ``load_kernel``, ``asarray`` → call kernels → ``close`` (or a ``with`` block).

    Attributes:
        hal: the HAL device underneath, for command buffers, semaphores and memory statistics.
        profile: what the device is and can do.
        name: the driver's name for it.
        uri: asks for this very device again.
    """

    def __init__(self, hal_device: hal.Device) -> None:
        self.hal = hal_device
        self.profile: DeviceProfile = hal_device.profile
        self.name: str = hal_device.profile.name
        self.uri: str = hal_device.uri
        self._stream = hal_device.create_semaphore(0, "stream")
        self._payload = 0
        self._lock = threading.Lock()
        self.mark_lock = threading.Lock()
        self._memory = MemoryTypeFlags.DEVICE_LOCAL if hal_device.plan.staging else _MAPPED
        self.staging: bool = hal_device.plan.staging

    # -- arrays --------------------------------------------------------------------------------------

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """An array of undefined contents.

        Raises:
            InvalidArgumentError: a negative length, or a dtype of Python objects.
            ResourceExhaustedError: no memory; the message has sizes and heaps.
        """
        return self.allocate(check_shape(shape), check_dtype(dtype))

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> DeviceArray:
        """``empty`` without the checks. For the runtime."""
        nbytes = dtype.itemsize
        for length in shape:
            nbytes *= length
        buffer = self.hal.create_buffer(nbytes, memory_type=self._memory)
        return DeviceArray(self, buffer, shape, dtype, nbytes)

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """An array of zeros, filled on the device."""
        array = self.empty(shape, dtype)
        if array.nbytes:
            commands = self._commands("zeros")
            commands.fill(array.buffer, b"\0")
            array.mark(self.submit((commands.end(),)), written=True)
        return array

    def asarray(self, a: ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """An array on this device with the contents of ``a``.

        Args:
            a: anything NumPy makes an array of. A DeviceArray of this device is returned as it is (unless the dtype
                differs); one of another device is copied through the host.
            dtype: convert to this dtype on the host first.
        """
        if isinstance(a, DeviceArray):
            if a.device is self and (dtype is None or a.dtype == np.dtype(dtype)):
                return a
            a = a.numpy()
        try:
            data = np.asarray(a, None if dtype is None else check_dtype(dtype))
        except (ValueError, TypeError, OverflowError) as error:
            if isinstance(error, InvalidArgumentError):
                raise
            raise InvalidArgumentError(f"asarray: {type(a).__name__} cannot become an array: {error}") from None
        shape = data.shape
        checked = check_dtype(data.dtype)
        array = self.allocate(shape, checked)
        if data.nbytes:
            self.upload(np.ascontiguousarray(data), array)
        return array

    # -- kernels -------------------------------------------------------------------------------------

    def load_kernel(
        self,
        source: str | Path | bytes,
        *,
        entry_point: str | None = None,
        specialization: Mapping[int | str, SpecializationValue] | None = None,
        defines: Mapping[str, str | int] | None = None,
        include_dirs: Sequence[str | Path] = (),
        subgroup_size: int | None = None,
    ) -> Kernel:
        """A kernel from GLSL or SPIR-V.

        Args:
            source: path of a ``.comp``/``.glsl`` or ``.spv`` file, GLSL text (it has a ``#version`` line), or the bytes
                of a SPIR-V module.
            entry_point: name; ``None`` takes the only one.
            specialization: values of specialization constants by id or by name.
            defines: preprocessor macros for GLSL.
            include_dirs: where GLSL's ``#include`` looks.
            subgroup_size: ask the driver for this subgroup size.

        Raises:
            NotFoundError: no such file, entry point or constant; the message lists those that exist.
            InvalidArgumentError: GLSL that does not compile, or SPIR-V that is damaged or breaks a rule.
            UnimplementedError: a capability that the device lacks, by name.
        """
        if subgroup_size is not None and (isinstance(subgroup_size, bool) or not isinstance(subgroup_size, int)):
            raise InvalidArgumentError(f"subgroup_size is an int, got {subgroup_size!r}")
        code, name = load_shader(
            source, defines=defines or {}, include_dirs=include_dirs, minor=self.profile.api_version[1]
        )
        return Kernel(
            self, code, name=name, entry_point=entry_point, specialization=specialization, subgroup_size=subgroup_size
        )

    # -- order ---------------------------------------------------------------------------------------

    def submit(self, commands: Sequence[CommandBuffer]) -> int:
        """Hands command buffers to the compute queue; returns the payload that marks their end. For the runtime."""
        if self.hal.dropped:
            self.hal.close_dropped()
        with self._lock:
            # An interrupt may have come between a submission and the note of it: the semaphore knows what is taken.
            payload = max(self._payload, self._stream.scheduled) + 1
            self.hal.compute_queue.submit(commands, signals=((self._stream, payload),))
            self._payload = payload
        return payload

    def wait(self, payload: int | None = None, timeout: float | None = None) -> None:
        """Blocks until everything given so far (or up to ``payload``) is done.

        Args:
            payload: what ``submit`` returned; ``None`` means everything.
            timeout: seconds; ``None`` waits for ever.

        Raises:
            DeadlineExceededError: the time passed first.
            DeviceLostError: the device was lost.
        """
        check_timeout(timeout)
        if payload is None:
            payload = max(self._payload, self._stream.scheduled)
        elif isinstance(payload, bool) or not isinstance(payload, int) or not 0 <= payload <= self._stream.scheduled:
            raise InvalidArgumentError(
                f"payload is what submit() returned, an int of at most {self._stream.scheduled}; got {payload!r}"
            )
        self._stream.wait(payload, timeout)

    def _commands(self, name: str) -> CommandBuffer:
        return self.hal.create_command_buffer(one_shot=True, name=name).begin()

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copies one array to another on the device. For the runtime."""
        if not source.nbytes:
            return
        commands = self._commands("copy")
        try:
            commands.copy(source.buffer, target.buffer)
            payload = self.submit((commands.end(),))
        except BaseException:
            commands.close()
            raise
        source.mark(payload, written=False)
        target.mark(payload, written=True)

    def upload(self, data: np.ndarray, target: DeviceArray) -> None:
        """Copies a C-contiguous array to a device array. For the runtime."""
        if not data.nbytes:
            return
        raw = raw_bytes(data)
        if target.buffer.host_visible:
            target.buffer.write(raw)
            return
        with self.hal.create_buffer(data.nbytes, memory_type=_STAGING) as staged:
            staged.write(raw)
            commands = self._commands("upload")
            try:
                commands.copy(staged, target.buffer)
                target.mark(self.submit((commands.end(),)), written=True)
            except BaseException:
                commands.close()
                raise

    def download(self, source: hal.Buffer, out: np.ndarray) -> None:
        """Copies a buffer to a C-contiguous array of its size, once what was submitted is done. For the runtime."""
        if not out.nbytes:
            return
        raw = raw_bytes(out)
        if source.host_visible:
            source.read_into(raw)
            return
        staging = _STAGING | MemoryTypeFlags.HOST_CACHED
        with self.hal.create_buffer(out.nbytes, memory_type=staging) as staged:
            commands = self._commands("download")
            try:
                commands.copy(source, staged)
                payload = self.submit((commands.end(),))
            except BaseException:
                commands.close()
                raise
            self.wait(payload)
            staged.read_into(raw)

    # -- end -----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self.hal.is_closed

    def close(self) -> None:
        """Waits for what is under way and gives everything back; idempotent. Its arrays and kernels are closed with it."""
        self.hal.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ""
        return f"<pumice.Device {self.name!r} ({self.profile.device_type.name.lower()}{state})>"
