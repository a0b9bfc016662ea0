"""The workload of a point, by the kind of its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...status import InvalidArgumentError
from ..definition.point import Point
from ..definition.settings import Sampling
from ..definition.target_settings import KINDS
from .copy import CopyWorkload
from .graph import GraphWorkload
from .kernel import KernelWorkload
from .module import ModuleWorkload
from .pipeline import PipelineWorkload
from .semaphore import SemaphoreWorkload
from .submit import SubmitWorkload
from .workload import Workload, WorkloadContext

_WORKLOADS: Final[Mapping[str, Callable[[Mapping[str, Any], WorkloadContext], Workload]]] = {
    "copy": CopyWorkload,
    "graph": GraphWorkload,
    "module": ModuleWorkload,
    "pipeline": PipelineWorkload,
    "semaphore": SemaphoreWorkload,
    "submit": SubmitWorkload,
}


def open_workload(kind: str, point: Point, context: WorkloadContext, sampling: Sampling) -> Workload:
    """Creates the workload of a point; ``sampling`` has the cache settings that the point leaves open."""
    settings: Mapping[str, Any] = point.settings
    if kind not in KINDS:
        raise InvalidArgumentError(f"there is no kind {kind!r} of targets; the kinds are {', '.join(KINDS)}")
    if kind == "kernel":
        settings = {**settings, "cache": settings["cache"] or sampling.cache}
        return KernelWorkload(settings, context, flush_bytes=sampling.flush_bytes)
    if kind == "semaphore" and settings["signal"] == "device":
        return _device_signal(settings, context)
    return _WORKLOADS[kind](settings, context)


def _device_signal(settings: Mapping[str, Any], context: WorkloadContext) -> Workload:
    """Opens the empty kernel, whose end is the signal."""
    if settings["wait"] == "asyncio" or settings["waiters"] != 1:
        raise InvalidArgumentError(
            'a signal by the device has one waiter, with wait "host", "thread", "poll" or "look"; '
            f"got {settings['waiters']} with {settings['wait']!r}"
        )
    defaults = {setting.name: setting.default for setting in KINDS["kernel"].settings}
    waits = {name: settings[name] for name in ("wait", "look")}
    return KernelWorkload(
        {**defaults, "source": "builtin:builtin/empty", "groups": 1, "cache": "hot", **waits}, context
    )
