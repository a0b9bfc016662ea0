"""Made-up extensions on the driver that is there: tools that few drivers have are tested without these.

Their answers are as the specification has them; what pumice asks of the driver is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.plan import PERFORMANCE_QUERY, PIPELINE_STATISTICS
from pumice.hal_vulkan.pipelines import pipeline
from pumice.hal_vulkan.pipelines.pipeline_statistics import CAPTURE_STATISTICS
from pumice.hal_vulkan.vulkan.functions import DeviceFunctions, InstanceFunctions, ffi, handle_value, new, text

__all__ = ["Statistics", "offer_counters", "offer_extensions", "offer_properties", "offer_statistics"]

Statistics = Sequence[tuple[str, str, float | int | bool]]
"""A statistic's name, its format (``b32``, ``i64``, ``u64``, ``f64``) and its value."""
_FORMATS = ("b32", "i64", "u64", "f64")


def _taken(head: Any, *names: str) -> dict[str, Any]:
    """Takes structures out of the chain behind another one; returns those that were there, by name."""
    kinds = {new(name).sType: name for name in names}
    taken: dict[str, Any] = {}
    at = ffi.cast("VkBaseOutStructure *", head)
    while at.pNext != ffi.NULL:
        name = kinds.get(at.pNext.sType)
        if name is None:
            at = at.pNext
        else:
            taken[name] = ffi.cast(f"{name} *", at.pNext)
            at.pNext = at.pNext.pNext
    return taken


def offer_extensions(monkeypatch: pytest.MonkeyPatch, driver: Driver, structures: Mapping[str, str]) -> list[set[str]]:
    """Has every device offer extensions, by the structure of features of each or ``""``; the driver that is there sees
    neither. Returns the extensions of these that each new device enables, and has to have enabled the features of.
    """
    profiles = [replace(one, extensions=one.extensions | structures.keys()) for one in driver.profiles]
    monkeypatch.setattr(driver, "profiles", type(driver.profiles)(profiles))
    real, enabled = driver.functions.vkCreateDevice, list[set[str]]()

    def create(physical: Any, info: Any, allocator: Any, handle: Any) -> int:
        names = [text(info.ppEnabledExtensionNames[i]) for i in range(info.enabledExtensionCount)]
        mine = {name for name in names if name in structures}
        enabled.append(mine)
        features = {structures[name] for name in mine if structures[name]}
        taken = _taken(info, *features)
        for feature in taken.values():
            assert ffi.cast("VkBool32 *", ffi.cast("char *", feature) + ffi.sizeof("VkBaseOutStructure"))[0] == 1
        assert taken.keys() == features, "an extension is enabled without its feature"
        others = [name for name in names if name not in mine]
        texts = [ffi.new("char[]", name.encode()) for name in others]
        array = ffi.new("char *[]", texts)
        info.ppEnabledExtensionNames, info.enabledExtensionCount = array, len(others)
        return int(real(physical, info, allocator, handle))

    monkeypatch.setattr(driver.functions, "vkCreateDevice", create)
    return enabled


def offer_properties(monkeypatch: pytest.MonkeyPatch, driver: Driver, struct_name: str, **values: int) -> None:
    """Has every physical device answer with values in a structure of properties."""
    real = driver.functions.vkGetPhysicalDeviceProperties2

    def answer(physical: Any, head: Any) -> None:
        taken = _taken(head, struct_name)
        real(physical, head)
        for properties in taken.values():
            for name, value in values.items():
                setattr(properties, name, value)

    monkeypatch.setattr(driver.functions, "vkGetPhysicalDeviceProperties2", answer)


def offer_statistics(
    monkeypatch: pytest.MonkeyPatch, driver: Driver, executables: Mapping[str, Statistics], *others: str
) -> list[set[str]]:
    """Has every pipeline that captures statistics answer with those of its executables."""
    structure = "VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR"
    enabled = offer_extensions(monkeypatch, driver, {PIPELINE_STATISTICS: structure, **dict.fromkeys(others, "")})
    real, flags = pipeline.new, [0]

    def made(struct_name: str, **fields: Any) -> Any:
        if struct_name == "VkComputePipelineCreateInfo":
            flags[0] = fields["flags"]
            fields["flags"] &= ~CAPTURE_STATISTICS
        return real(struct_name, **fields)

    def fill(count: Any, array: Any, rows: Sequence[Callable[[Any], None]]) -> int:
        if array != ffi.NULL:
            assert count[0] == len(rows)
            for one, row in zip(array, rows, strict=True):
                row(one)
        count[0] = len(rows)
        return 0

    def properties(_: Any, info: Any, count: Any, array: Any) -> int:
        assert flags == [CAPTURE_STATISTICS], "statistics of a pipeline that captures none"
        assert info.sType == new("VkPipelineInfoKHR").sType

        def named(name: str) -> Callable[[Any], None]:
            return lambda one: setattr(one, "name", name.encode())

        return fill(count, array, [named(name) for name in executables])

    def statistics(_: Any, info: Any, count: Any, array: Any) -> int:
        assert info.sType == new("VkPipelineExecutableInfoKHR").sType

        def row(name: str, kind: str, value: float) -> Callable[[Any], None]:
            def put(one: Any) -> None:
                assert one.sType == new("VkPipelineExecutableStatisticKHR").sType
                one.name, one.description, one.format = name.encode(), f"the {name}".encode(), _FORMATS.index(kind)
                setattr(one.value, kind, value)

            return put

        mine = list(executables.values())[info.executableIndex]
        return fill(count, array, [row(*one) for one in mine])

    monkeypatch.setattr(pipeline, "new", made)
    for name, function in (
        ("vkGetPipelineExecutablePropertiesKHR", properties),
        ("vkGetPipelineExecutableStatisticsKHR", statistics),
    ):
        monkeypatch.setattr(DeviceFunctions, name, staticmethod(function), raising=False)
    return enabled


def offer_counters(
    monkeypatch: pytest.MonkeyPatch,
    driver: Driver,
    counters: Sequence[tuple[str, int, str, float]],
    *,
    passes: int = 1,
    locked: int = 0,
) -> list[str]:
    """Has every device offer counters: name, scope, storage (``int32`` ... ``float64``), and what is counted.

    Returns what is done, in order. ``locked`` is what acquiring the profiling lock returns.
    """
    offer_extensions(monkeypatch, driver, {PERFORMANCE_QUERY: "VkPhysicalDevicePerformanceQueryFeaturesKHR"})
    storages = ("int32", "int64", "uint32", "uint64", "float32", "float64")
    done: list[str] = []
    pools: dict[int, list[int]] = {}

    def real(device: Any, name: str) -> Any:
        return ffi.cast(f"PFN_{name}", driver.functions.vkGetDeviceProcAddr(device, name.encode()))

    def enumerate_counters(_: Any, family: int, count: Any, found: Any, texts: Any) -> int:
        for index, (name, scope, storage, _value) in enumerate(counters if found != ffi.NULL else ()):
            found[index].scope, found[index].storage, found[index].unit = scope, storages.index(storage), 3
            texts[index].name, texts[index].category = name.encode(), b"memory"
            texts[index].description = f"the {name}".encode()
        count[0] = len(counters)
        return 0

    def count_passes(_: Any, info: Any, count: Any) -> None:
        count[0] = passes

    def acquire(_: Any, info: Any) -> int:
        if not locked:
            done.append("lock")
        return locked

    def create_pool(device: Any, info: Any, allocator: Any, handle: Any) -> int:
        create = real(device, "vkCreateQueryPool")
        if info.queryType != 1_000_116_000:
            return int(create(device, info, allocator, handle))
        kind = ffi.cast("VkQueryPoolPerformanceCreateInfoKHR *", info.pNext)
        assert kind.sType == new("VkQueryPoolPerformanceCreateInfoKHR").sType
        result = create(device, new("VkQueryPoolCreateInfo", queryType=2, queryCount=1), allocator, handle)
        pools[handle_value(handle[0])] = [kind.pCounterIndices[i] for i in range(kind.counterIndexCount)]
        return int(result)

    def submit(queue: Any, count: int, info: Any, fence: Any) -> int:
        done.extend(
            f"pass {taken.counterPassIndex}" for taken in _taken(info, "VkPerformanceQuerySubmitInfoKHR").values()
        )
        return int(real(devices[-1], "vkQueueSubmit")(queue, count, info, fence))

    def results(device: Any, pool: Any, first: int, count: int, size: int, data: Any, stride: int, flags: int) -> int:
        if handle_value(pool) not in pools:
            read = real(device, "vkGetQueryPoolResults")
            return int(read(device, pool, first, count, size, data, stride, flags))
        done.append("read")
        for place, index in enumerate(pools[handle_value(pool)]):
            setattr(data[place], counters[index][2], counters[index][3])
        return 0

    devices: list[Any] = []
    creating = driver.functions.vkCreateDevice

    def create_device(physical: Any, info: Any, allocator: Any, handle: Any) -> int:
        result = creating(physical, info, allocator, handle)
        devices.append(handle[0])
        return int(result)

    monkeypatch.setattr(driver.functions, "vkCreateDevice", create_device)
    for name, function in (
        ("vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR", enumerate_counters),
        ("vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR", count_passes),
    ):
        monkeypatch.setattr(InstanceFunctions, name, staticmethod(function), raising=False)
    for name, function in (
        ("vkAcquireProfilingLockKHR", acquire),
        ("vkReleaseProfilingLockKHR", lambda _: done.append("release")),
        ("vkCreateQueryPool", create_pool),
        ("vkCmdBeginQuery", lambda *_: done.append("begin")),
        ("vkCmdEndQuery", lambda *_: done.append("end")),
        ("vkQueueSubmit", submit),
        ("vkGetQueryPoolResults", results),
    ):
        monkeypatch.setattr(DeviceFunctions, name, staticmethod(function), raising=False)
    return done
