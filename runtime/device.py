"""The device as users see it: arrays and kernels, on top of the HAL of any device.

A device runs its work in the order of the calls. Calls return before the work is done; reading a result waits for it.

Thread rule: a device may be used from any thread.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from ..status import InvalidArgumentError, UnimplementedError
from .arrays.array import ArrayLike, DeviceArray, array_of, new_array
from .arrays.array_device import ArrayDevice
from .arrays.spec import check_dtype, check_shape

if TYPE_CHECKING:
    from ..hal_vulkan import Device as VulkanDevice
    from ..hal_vulkan import DeviceProfile, SpecializationValue
    from .kernels.kernel import Kernel

REFERENCE: Final = "reference"
"""The URI of the reference device."""

_log = logging.getLogger("pumice")


def list_devices(*, validation: bool | None = None) -> tuple[DeviceProfile, ...]:
    """What every Vulkan device of this machine is and can do, in the order of ``vulkan://<index>``.

    Raises:
        UnavailableError: no Vulkan loader; the message says what to install.
    """
    from ..hal_vulkan import shared_driver

    return shared_driver(validation=validation).profiles


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
            ``"vulkan://GPU-<uuid>"``, ``"vulkan://<part of the name>"`` or ``"lavapipe"``; or ``"reference"``, which
            runs compiled programs in NumPy without Vulkan. ``None`` reads the environment variable ``PUMICE_DEVICE``,
            then takes the best, and logs a warning once if that is a CPU.
        validation: turn the Khronos validation layers on; ``None`` reads ``PUMICE_VALIDATION``.
        staging: copy through staging memory as on discrete GPUs (``True``) or map device memory (``False``); ``None``
            takes what suits the device.
        robust: bound every access of a kernel to the arrays it was given (Vulkan's ``robustBufferAccess``), so that a
            kernel with an index error reads zeros instead of other memory or crashing the driver. It costs some speed.
        persistent_cache: keep compiled pipelines on disk.

    Raises:
        NotFoundError: no such device; the message lists those that exist. No other device is taken in its place.
        UnavailableError: no Vulkan loader or driver; the message says what to install.
    """
    if is_reference(uri):
        from ..hal_reference.device import Device as ReferenceDevice

        return Device(ReferenceDevice())
    from ..hal_vulkan import Device as VulkanDevice
    from ..hal_vulkan import DeviceType, PlanOptions, shared_driver

    driver = shared_driver(validation=validation)
    index = driver.select(uri)
    device = Device(
        VulkanDevice(
            driver,
            index,
            options=PlanOptions(staging=staging, robust_buffer_access=robust),
            persistent_cache=persistent_cache,
        )
    )
    if uri is None and not os.environ.get("PUMICE_DEVICE") and device.profile.device_type is DeviceType.CPU:
        _warn_of_cpu(device.name)
    return device


def is_reference(uri: str | None) -> bool:
    """Whether a URI, or the environment variable ``PUMICE_DEVICE`` for ``None``, names the reference device."""
    return (uri or os.environ.get("PUMICE_DEVICE", "")) == REFERENCE


@functools.cache
def _warn_of_cpu(name: str) -> None:
    """Warns once."""
    _log.warning(
        "no GPU was found: running on the CPU with %s. (No warning when you ask for it: device 'lavapipe' or "
        "PUMICE_DEVICE=lavapipe.)",
        name,
    )


class Device(ArrayDevice):
    """A device with arrays and kernels.

    Calling sequence: ``open_device`` → ``load_kernel``, ``asarray`` → call kernels → ``close`` (or a ``with`` block).

    Attributes:
        hal: the HAL device underneath, for command buffers and semaphores.
        name: the driver's name for it.
        uri: opens the same device again.
    """

    @property
    def vulkan(self) -> VulkanDevice:
        """``hal`` of a Vulkan device, for pipelines, timestamps and memory statistics.

        Raises:
            UnimplementedError: it is the reference device.
        """
        from ..hal_vulkan import Device as VulkanDevice

        if not isinstance(self.hal, VulkanDevice):
            raise UnimplementedError(
                f"the {self.name} device has no Vulkan: it runs compiled programs, no kernels, and has no profile and "
                "no timestamps; open a Vulkan device for them"
            )
        return self.hal

    @property
    def profile(self) -> DeviceProfile:
        """What a Vulkan device is and can do; UnimplementedError for the reference device."""
        return self.vulkan.profile

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """An array of undefined contents.

        Raises:
            InvalidArgumentError: a negative length, or a dtype of Python objects.
            ResourceExhaustedError: no memory; the message has sizes and heaps.
        """
        return new_array(self, check_shape(shape), check_dtype(dtype))

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """An array of zeros, filled on the device."""
        array = self.empty(shape, dtype)
        if array.nbytes:
            commands = self.hal.create_command_buffer(one_shot=True, name="zeros").begin()
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
        return array_of(self, a, dtype)

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
            UnimplementedError: a capability that the device lacks, by name; the reference device runs no kernels.
        """
        if subgroup_size is not None and (isinstance(subgroup_size, bool) or not isinstance(subgroup_size, int)):
            raise InvalidArgumentError(f"subgroup_size is an int, got {subgroup_size!r}")
        from ..spirv.sources.options import SourceOptions
        from .kernels.kernel import Kernel
        from .kernels.shader_source import load_shader

        minor = self.profile.api_version[1]
        options = SourceOptions(defines=defines or {}, include_dirs=include_dirs)
        code, name = load_shader(source, options, minor=minor)
        return Kernel(
            self, code, name=name, entry_point=entry_point, specialization=specialization, subgroup_size=subgroup_size
        )
