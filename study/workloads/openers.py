"""The workload of a point, by the kind of its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...status import InvalidArgumentError
from ..definition.point import Point
from ..definition.settings import Sampling
from ..definition.target_settings import KINDS
from .workload import Surroundings, Workload

__all__ = ["open_workload"]


def open_workload(kind: str, point: Point, around: Surroundings, sampling: Sampling) -> Workload:
    """Makes what a point runs.

    Args:
        kind: of the point's target.
        point: with its settings evaluated.
        around: devices, folder, seed.
        sampling: for the caches, where the point says nothing about them.

    Raises:
        PumiceError: what the settings ask for cannot be made on this device.
    """
    settings: Mapping[str, Any] = point.settings
    match kind:
        case "kernel":
            from .kernel import KernelWorkload

            return KernelWorkload(
                {**settings, "cache": settings["cache"] or sampling.cache}, around, flush_bytes=sampling.flush_bytes
            )
        case "module":
            from .module import ModuleWorkload

            return ModuleWorkload(settings, around)
        case "copy":
            from .copy import CopyWorkload

            return CopyWorkload(settings, around)
        case "pipeline":
            from .pipeline import PipelineWorkload

            return PipelineWorkload(settings, around)
        case "semaphore":
            if settings["signal"] == "device":
                return _device_signal(settings, around)
            from .semaphore import SemaphoreWorkload

            return SemaphoreWorkload(settings, around)
        case "submit":
            from .submit import SubmitWorkload

            return SubmitWorkload(settings, around)
    raise InvalidArgumentError(f"there is no kind {kind!r} of targets; there are {', '.join(KINDS)}")


def _device_signal(settings: Mapping[str, Any], around: Surroundings) -> Workload:
    """The empty kernel, whose end is the signal."""
    from .kernel import KernelWorkload

    if settings["wait"] == "asyncio" or settings["waiters"] != 1:
        raise InvalidArgumentError(
            'a signal of the device is waited for by one waiter with wait "host", "thread" or "poll"; '
            f"got {settings['waiters']} with {settings['wait']!r}"
        )
    defaults = {one.name: one.default for one in KINDS["kernel"].settings}
    return KernelWorkload(
        {**defaults, "source": "builtin:builtin/empty", "groups": 1, "cache": "hot", "wait": settings["wait"]}, around
    )
