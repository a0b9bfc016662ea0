"""``pumice devices``: every Vulkan device of this machine, and whether pumice can run on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..errors import usage
from ..streams import put

if TYPE_CHECKING:
    from ...hal_vulkan import DeviceProfile


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Everything that is known of each device, as JSON.")
def devices(as_json: bool) -> None:
    """List every Vulkan device of this machine: what it is, its URI, and whether pumice can run on it.

    The device `reference`, which runs compiled programs without Vulkan, is not listed: it is always there.

    The JSON is a list with an object for each device: index, uri, usable, problems (why not), profile, and repairs:
    the faults of its driver that shaders are repaired for, or null if it was not tested yet.
    """
    from ...base.install_hints import install_hint
    from ...runtime import list_devices
    from ...status import UnavailableError
    from ..tables import print_json

    with usage():  # PUMICE_VALIDATION
        profiles = list_devices()
    if not profiles:
        raise UnavailableError("a Vulkan loader is installed, but it lists no device. " + install_hint("driver"))
    uris = _uris(profiles)
    if as_json:
        print_json(
            [
                {
                    "index": index,
                    "uri": uri,
                    "usable": not profile.problems(),
                    "problems": profile.problems(),
                    "profile": profile.to_json(),
                    "repairs": _fault_names(profile),
                }
                for index, (profile, uri) in enumerate(zip(profiles, uris, strict=True))
            ]
        )
        return
    for index, (profile, uri) in enumerate(zip(profiles, uris, strict=True)):
        if index:
            put()
        _show(index, profile, uri)


def _uris(profiles: tuple[DeviceProfile, ...]) -> list[str]:
    """Returns a URI for each device: its UUID, or its index if the UUID is missing or shared with another driver's
    device.
    """
    seen: set[str] = {""}
    uris = []
    for index, profile in enumerate(profiles):
        uuid = profile.device_uuid
        uris.append(f"vulkan://{index}" if uuid in seen else f"vulkan://GPU-{uuid}")
        seen.add(uuid)
    return uris


def _show(index: int, profile: DeviceProfile, uri: str) -> None:
    from ..tables import heading, print_facts

    problems = profile.problems()
    driver = " ".join(part for part in (profile.driver_name, profile.driver_info) if part) or profile.driver_id_name
    heading(f"{index}: {profile.name}")
    print_facts(
        [
            ("URI", f"{uri}  (or vulkan://{index})" if uri != f"vulkan://{index}" else uri),
            ("type", profile.device_type.name.lower()),
            ("driver", driver or "unknown"),
            ("Vulkan", ".".join(map(str, profile.api_version))),
            ("memory", "\n".join(_heaps(profile))),
            ("queues", "\n".join(_queues(profile))),
            ("subgroup", _subgroup(profile)),
            ("timestamps", _timestamps(profile)),
            ("repairs", _repairs(profile)),
            ("usable", "no: " + "; ".join(problems) if problems else "yes"),
        ]
    )


def _fault_names(profile: DeviceProfile) -> list[str] | None:
    from ...hal_vulkan.pipelines.self_test import known_verdict

    verdict = known_verdict(profile)
    return None if verdict is None else sorted(fault.value for fault in verdict.faults)


def _repairs(profile: DeviceProfile) -> str:
    """Returns the driver faults that shaders are repaired for, as found by the self-test."""
    from ...base.switches import switch
    from ...hal_vulkan.pipelines.self_test import known_verdict

    asked = switch("PUMICE_REPAIRS")
    if asked is not None:
        return f"{'all' if asked else 'none'}, by PUMICE_REPAIRS"
    verdict = known_verdict(profile)
    if verdict is None:
        return "not tested yet: the first kernel on the device runs the driver's self-test"
    repairs = ", ".join(sorted(fault.value for fault in verdict.faults)) or "none needed"
    unmended = ", ".join(sorted(fault.value for fault in verdict.unmended))
    return repairs + (f"; wrong all the same: {unmended}" if unmended else "")


def _heaps(profile: DeviceProfile) -> list[str]:
    from ...hal_vulkan.instance.profile import HeapFlag, MemoryProperty

    names = (
        (MemoryProperty.HOST_VISIBLE, "host-visible"),
        (MemoryProperty.HOST_CACHED, "cached"),
        (MemoryProperty.HOST_COHERENT, "coherent"),
    )
    lines = []
    for index, heap in enumerate(profile.memory_heaps):
        flags = 0
        for memory_type in profile.memory_types:
            if memory_type.heap_index == index:
                flags |= memory_type.property_flags
        words = ["device-local"] if heap.flags & HeapFlag.DEVICE_LOCAL else []
        words += [word for flag, word in names if flags & flag]
        lines.append(f"heap {index}: {heap.size / 2**30:.2f} GiB" + "".join(f", {word}" for word in words))
    return lines or ["none"]


def _queues(profile: DeviceProfile) -> list[str]:
    from ...hal_vulkan.instance.profile import QueueFlag

    names = ((QueueFlag.GRAPHICS, "graphics"), (QueueFlag.COMPUTE, "compute"), (QueueFlag.TRANSFER, "transfer"))
    return [
        f"family {index}: {family.count} x "
        + (" ".join(name for flag, name in names if family.flags & flag) or "neither compute nor transfer")
        for index, family in enumerate(profile.queue_families)
    ] or ["none"]


def _subgroup(profile: DeviceProfile) -> str:
    subgroup = profile.subgroup
    size = f"{subgroup.size} invocations"
    if subgroup.min_size != subgroup.max_size:
        size += f" ({subgroup.min_size} to {subgroup.max_size})"
    return f"{size}: {', '.join(sorted(subgroup.supported_operations)) or 'no operations'}"


def _timestamps(profile: DeviceProfile) -> str:
    from ...hal_vulkan.instance.plan import plan_device
    from ...status import PumiceError

    bits = [str(family.timestamp_valid_bits) for family in profile.queue_families if family.has_compute]
    if not any(value != "0" for value in bits):
        return "none"
    try:
        calibrated = plan_device(profile).calibrated_timestamps
    except PumiceError:
        calibrated = None
    return f"{profile.limits.timestamp_period:g} ns a tick, {'/'.join(bits)} valid bits, " + (
        f"calibrated ({calibrated})" if calibrated else "not calibrated"
    )
