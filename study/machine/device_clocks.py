"""Clock rates, temperatures and throttle reasons, from NVIDIA's management library, from sysfs for AMD and Intel, and
of the CPU; and NVIDIA's handle of a device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from ...hal_vulkan import DeviceProfile, DeviceType
from ...runtime.device import Device
from ...status import UnavailableError

_NVIDIA = 0x10DE


def nvml_device(profile: DeviceProfile) -> tuple[Any, Any]:
    """Returns the module ``pynvml`` and the device's handle. UnavailableError: not NVIDIA's, or no library."""
    if profile.vendor_id != _NVIDIA:
        raise UnavailableError(f"{profile.name} is not an NVIDIA device")
    try:
        import pynvml

        pynvml.nvmlInit()
        digits = profile.device_uuid.replace("-", "")
        uuid = f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except Exception as error:  # any error of a binding whose library may have any version
        raise UnavailableError(f"NVML does not answer for {profile.name}: {error}") from error


Reading = dict[str, Any]


def clock_reader(device: Device) -> Callable[[], Mapping[str, Any]]:
    """Returns a function that reads the device's clocks by the names of ``Sink.add_clock``; it does not fail."""
    readers = [_cpu]
    if device.profile.device_type is not DeviceType.CPU:
        vendor = device.profile.vendor_id
        if vendor == 0x10DE and (nvidia := _nvidia(device)) is not None:
            readers.append(nvidia)
        elif (drm := _drm(vendor)) is not None:
            readers.append(drm)

    def read() -> Reading:
        readings: Reading = {}
        for reader in readers:
            with contextlib.suppress(Exception):  # readings are only information
                readings |= reader()
        return readings

    return read


def _cpu() -> Reading:
    frequency = psutil.cpu_freq()
    return {"cpu_mhz": float(frequency.current)} if frequency and frequency.current else {}


def _nvidia(device: Device) -> Callable[[], Reading] | None:
    try:
        pynvml, handle = nvml_device(device.profile)
    except UnavailableError:
        return None
    reasons = {
        "power": getattr(pynvml, "nvmlClocksThrottleReasonSwPowerCap", 0),
        "heat": getattr(pynvml, "nvmlClocksThrottleReasonSwThermalSlowdown", 0)
        | getattr(pynvml, "nvmlClocksThrottleReasonHwThermalSlowdown", 0),
        "hardware": getattr(pynvml, "nvmlClocksThrottleReasonHwSlowdown", 0),
    }

    def read() -> Reading:
        bits = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return {
            "frequency_mhz": float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            "memory_mhz": float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            "temperature_c": float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            "power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "throttle": " ".join(name for name, mask in reasons.items() if bits & mask),
        }

    return read


def _drm(vendor: int) -> Callable[[], Reading] | None:
    """Returns a reader of the vendor's only card in sysfs; None for several cards, which cannot be distinguished."""
    cards = []
    for file in Path("/sys/class/drm").glob("card[0-9]*/device/vendor"):
        with contextlib.suppress(OSError, ValueError):
            if int(file.read_text(), 16) == vendor:
                cards.append(file.parent)
    if len(cards) != 1:
        return None
    card = cards[0]

    def number(pattern: str, scale: float) -> float | None:
        for file in card.glob(pattern):
            return float(file.read_text()) / scale
        return None

    def read() -> Reading:
        readings = {
            # AMD reports hertz of the shader clock, Intel megahertz of the GPU.
            "frequency_mhz": number("hwmon/hwmon*/freq1_input", 1e6) or number("drm/card*/gt_act_freq_mhz", 1),
            "temperature_c": number("hwmon/hwmon*/temp1_input", 1e3),
            "power_w": number("hwmon/hwmon*/power1_average", 1e6),
        }
        return {name: value for name, value in readings.items() if value is not None}

    return read
