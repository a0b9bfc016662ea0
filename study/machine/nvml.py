"""NVIDIA's management library, and the handle that it has for a device."""

from __future__ import annotations

from typing import Any

from ...hal_vulkan import DeviceProfile
from ...status import UnavailableError

_NVIDIA = 0x10DE


def nvml_device(profile: DeviceProfile) -> tuple[Any, Any]:
    """Returns the module ``pynvml`` and the device's handle. UnavailableError: not NVIDIA's, or no library."""
    if profile.vendor_id != _NVIDIA:
        raise UnavailableError(f"{profile.name} is no NVIDIA device")
    try:
        import pynvml

        pynvml.nvmlInit()
        digits = profile.device_uuid.replace("-", "")
        uuid = f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except Exception as error:  # any error of a binding whose library may have any version
        raise UnavailableError(f"NVML does not answer for {profile.name}: {error}") from error
