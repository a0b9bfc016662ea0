"""Facts of the host and the device that affect timings, as JSON values for results."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from pathlib import Path
from typing import Final

import psutil

from ...hal_vulkan.instance.plan import DevicePlan
from ...hal_vulkan.instance.profile import DeviceProfile
from ..definition.study import Study
from ..results.comparison.revision import read_revision, revision_of

_PACKAGES: Final = ("numpy", "scipy", "vulkan")
_CPUS: Final = Path("/sys/devices/system/cpu")
_CLOCK_SOURCE: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_CONTAINER_FILES: Final = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}
_PLANNED: Final = ("compute_family", "transfer_family", "unified_memory", "staging", "push_descriptors")
_LIMITS: Final = (
    "max_compute_work_group_count",
    "max_compute_work_group_invocations",
    "max_compute_work_group_size",
    "max_compute_shared_memory_size",
    "max_push_constants_size",
    "max_push_descriptors",
    "max_storage_buffer_range",
    "max_memory_allocation_size",
    "non_coherent_atom_size",
    "min_imported_host_pointer_alignment",
)


def environment_facts() -> dict[str, object]:
    """Returns current facts of the host and the process; None for unknown facts."""
    return {
        "pumice": _version("pumice"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: _version(name) for name in _PACKAGES},
        "os": platform.platform(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": list(psutil.getloadavg()),
        "clock": {
            "monotonic_resolution_ns": time.get_clock_info("monotonic").resolution * 1e9,
            "source": _read(_CLOCK_SOURCE),
        },
        "nice": os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else None,
        "container": _container(),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(("PUMICE_", "VK_", "MESA_", "LP_", "__GL_"))
        },
    }


def revision_facts(study: Study) -> dict[str, object]:
    """Returns the commits of a study's files as JSON values: ``revision``, and ``against_revision`` for the other side.
    Programs from earlier results have the commits recorded there. Outside a repository there are none.
    """
    commits: dict[str, object] = {}
    for name, side in (("revision", study), ("against_revision", study.against)):
        if side is None:
            continue
        if side.kept is not None and side.kept.origin:
            revision = revision_of(side.kept.revision)
        else:
            revision = read_revision(side.folder)
        if revision is not None:
            commits[name] = revision.facts()
    return commits


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu() -> dict[str, object]:
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, RuntimeError):  # depending on the platform
        frequency = None
    return {
        "model": _cpu_model(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "usable": len(os.sched_getaffinity(0)) if sys.platform == "linux" else psutil.cpu_count(),
        "mhz": frequency.current if frequency else None,
        "max_mhz": frequency.max if frequency and frequency.max else None,
        "governor": _read(_CPUS / "cpu0/cpufreq/scaling_governor"),
        "boost": _boost(),
    }


def _cpu_model() -> str | None:
    # On Linux platform.processor() is empty or the architecture.
    for line in (_read(Path("/proc/cpuinfo")) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor() or None


def _boost() -> bool | None:
    """Whether cores may exceed their nominal clock."""
    if (no_turbo := _read(_CPUS / "intel_pstate/no_turbo")) is not None:
        return no_turbo == "0"
    boost = _read(_CPUS / "cpufreq/boost")
    return None if boost is None else boost == "1"


def _container() -> dict[str, object]:
    kinds = [kind for path, kind in _CONTAINER_FILES.items() if Path(path).exists()]
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        kinds.append("kubernetes")
    facts: dict[str, object] = {"kind": kinds} if kinds else {}
    # Processor time of the group: "max 100000" if it is not limited.
    quota = _read(Path("/sys/fs/cgroup/cpu.max"))
    if quota and not quota.startswith("max"):
        facts["cpu_quota"] = quota
    return facts


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def device_facts(profile: DeviceProfile, plan: DevicePlan) -> dict[str, object]:
    """Returns facts of a device, its driver and its plan, as JSON values."""
    record = profile.to_json()
    limits = record["limits"]
    assert isinstance(limits, dict)
    return {
        "name": profile.name,
        "type": profile.device_type.name,
        "api_version": ".".join(map(str, profile.api_version)),
        "vendor_id": profile.vendor_id,
        "device_id": profile.device_id,
        "device_uuid": profile.device_uuid,
        "driver": {
            name: getattr(profile, f"driver_{name}") for name in ("id", "id_name", "name", "info", "version", "uuid")
        },
        "timestamps": {
            "period_ns": profile.limits.timestamp_period,
            "valid_bits": plan.timestamp_bits,
            "calibrated": plan.calibrated_timestamps,
            "host_clock": plan.host_time_domain,
            "domains": record["time_domains"],
        },
        "limits": {name: limits[name] for name in _LIMITS},
        "subgroup": record["subgroup"],
        "memory_heaps": record["memory_heaps"],
        "plan": {
            **{name: getattr(plan, name) for name in _PLANNED},
            "compute_queues": plan.compute_queue_count,
            "extensions": list(plan.extensions),
            "why": list(plan.why),
        },
    }
