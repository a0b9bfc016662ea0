"""The workload of a point, by the kind of its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...status import InvalidArgumentError
from ..definition.point import Point
from ..definition.settings import Sampling
from ..definition.target_settings import KINDS
from .workload import Workload, WorkloadContext


def open_workload(kind: str, point: Point, context: WorkloadContext, sampling: Sampling) -> Workload:
    """Creates the workload of a point; ``sampling`` has the cache settings that the point leaves open."""
    settings: Mapping[str, Any] = point.settings
    match kind:
        case "kernel":
            from .kernel import KernelWorkload

            return KernelWorkload(
                {**settings, "cache": settings["cache"] or sampling.cache}, context, flush_bytes=sampling.flush_bytes
            )
        case "module":
            from .module import ModuleWorkload

            return ModuleWorkload(settings, context)
        case "copy":
            from .copy import CopyWorkload

            return CopyWorkload(settings, context)
        case "pipeline":
            from .pipeline import PipelineWorkload

            return PipelineWorkload(settings, context)
        case "semaphore":
            if settings["signal"] == "device":
                return _device_signal(settings, context)
            from .semaphore import SemaphoreWorkload

            return SemaphoreWorkload(settings, context)
        case "submit":
            from .submit import SubmitWorkload

            return SubmitWorkload(settings, context)
    raise InvalidArgumentError(f"there is no kind {kind!r} of targets; the kinds are {', '.join(KINDS)}")


def _device_signal(settings: Mapping[str, Any], context: WorkloadContext) -> Workload:
    """The empty kernel, whose end is the signal."""
    from .kernel import KernelWorkload

    if settings["wait"] == "asyncio" or settings["waiters"] != 1:
        raise InvalidArgumentError(
            'a signal by the device has one waiter, with wait "host", "thread" or "poll"; '
            f"got {settings['waiters']} with {settings['wait']!r}"
        )
    defaults = {one.name: one.default for one in KINDS["kernel"].settings}
    return KernelWorkload(
        {**defaults, "source": "builtin:builtin/empty", "groups": 1, "cache": "hot", "wait": settings["wait"]}, context
    )
