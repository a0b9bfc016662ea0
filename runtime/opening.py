"""Opens devices, and lists the devices of this machine."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from ..status import InvalidArgumentError, shown
from ..waits.wait_mode import WaitMode, checked_wait_mode
from .device import Device

if TYPE_CHECKING:
    from ..hal_vulkan import DeviceProfile, PrintedLine

REFERENCE: Final = "reference"
"""The URI of the reference device."""

_log = logging.getLogger("pumice")


def list_devices(*, validation: bool | None = None) -> tuple[DeviceProfile, ...]:
    """Returns the profile of every Vulkan device of this machine, in the order of ``vulkan://<index>``.

    Raises:
        UnavailableError: there is no Vulkan loader; the message says what to install.
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
    loop_guard: bool | None = None,
    sanitize: bool | None = None,
    print: Callable[[PrintedLine], object] | Literal[False] | None = None,
    wait: WaitMode | None = None,
) -> Device:
    """Opens a device.

    Args:
        uri: the URI: ``"vulkan"`` (the best: discrete, integrated, virtual, CPU), ``"vulkan://1"`` (an index),
            ``"vulkan://GPU-<uuid>"``, ``"vulkan://<part of the name>"`` or ``"lavapipe"``; or ``"reference"``, which
            runs compiled programs in NumPy without Vulkan. ``None`` reads the environment variable ``PUMICE_DEVICE``,
            then takes the best, and logs a warning once if that is a CPU.
        validation: whether to turn the Khronos validation layers on; ``None`` reads ``PUMICE_VALIDATION``.
        staging: whether to copy through staging memory as on discrete GPUs (``True``) or to map device memory
            (``False``); ``None`` chooses for the device.
        robust: whether to bound every access of a kernel to its arrays (Vulkan's ``robustBufferAccess``), and to its
            images if the device has ``robustImageAccess``. Then a kernel with an index error reads zeros instead of
            reading other memory or crashing the driver. This costs some speed.
        persistent_cache: whether to keep compiled pipelines on disk.
        loop_guard: whether to report loops that the driver ends early (docs/trusting-results.md): reading a result of
            such a kernel raises DataLossError. ``None`` reads ``PUMICE_LOOP_GUARD``; its default is on for drivers that
            end loops, such as Mesa's lavapipe.
        sanitize: whether to report invalid accesses of kernels and programs, and skip them (docs/trusting-results.md):
            beyond the end of a buffer, an array or an image, through null and wild device addresses, and reads of
            uninitialised workgroup memory. This is slow, for tests. ``None`` reads ``PUMICE_SANITIZE``.
        print: the function that gets each line that a shader prints (``debugPrintfEXT``, ``printf``), a ``PrintedLine``
            with kernel, invocation and text: Python's ``print``, for one (docs/printing.md). ``None`` writes lines to
            the log ``pumice.print``; ``False`` leaves prints out. Lines come when a result is read, or with ``wait``.
        wait: the host's wait mode: ``"adaptive"`` polls for as long as recent waits took, some tens of
            microseconds at most, and then blocks; ``"block"`` blocks at once; ``"spin"`` polls until the work is done
            and keeps a core busy. A call can choose another mode. ``None`` reads ``PUMICE_WAIT``, then takes adaptive.
            The reference device works inside the calls and needs no wait.

    Raises:
        InvalidArgumentError: an argument is no URI, no wait mode, or no function.
        NotFoundError: there is no such device; the message lists those that exist. No other device is opened instead.
        UnavailableError: there is no Vulkan loader or driver; the message says what to install.
    """
    if wait is not None:
        checked_wait_mode(wait)
    if print is not None and print is not False and not callable(print):
        raise InvalidArgumentError(f"print: expected a function of a line, False or None, got {shown(print)}")
    if is_reference(uri):
        from ..hal_reference.device import Device as ReferenceDevice

        return Device(ReferenceDevice())
    from ..hal_vulkan import Device as VulkanDevice
    from ..hal_vulkan import DeviceType, PlanOptions, shared_driver

    driver = shared_driver(validation=validation)
    index = driver.select(uri)
    options = PlanOptions(
        staging=staging,
        robust_buffer_access=robust,
        loop_guard=loop_guard,
        sanitize=sanitize,
        prints=print is not False,
        wait=wait,
    )
    # Not VulkanDevice(…): Ctrl-C may come after the call of a class has returned, and would lose the device. After the
    # call of a method it cannot.
    made, is_made = VulkanDevice.__new__(VulkanDevice), False
    try:
        made.__init__(driver, index, options=options, persistent_cache=persistent_cache)  # type: ignore[misc]
        is_made = True
        if print:
            made.reports.prints.on_line = print
        device = Device(made)
        if uri is None and not os.environ.get("PUMICE_DEVICE") and device.profile.device_type is DeviceType.CPU:
            _warn_of_cpu(device.name)
    except BaseException:
        if is_made:
            made.close()
        raise
    return device


def is_reference(uri: str | None) -> bool:
    """Whether a URI, or for ``None`` the environment variable ``PUMICE_DEVICE``, selects the reference device."""
    return (uri or os.environ.get("PUMICE_DEVICE", "")) == REFERENCE


@functools.cache
def _warn_of_cpu(name: str) -> None:
    _log.warning(
        "no GPU was found: running on the CPU with %s. (No warning when you ask for it: device 'lavapipe' or "
        "PUMICE_DEVICE=lavapipe.)",
        name,
    )
