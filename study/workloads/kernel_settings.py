"""The meaning of a kernel target's settings: its code, device options, constants and arguments."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ... import shaders
from ...hal_vulkan import DeviceLimits, PlanOptions, reflect
from ...runtime.arrays.array import DeviceArray
from ...runtime.kernels.parameters.names import Names
from ...runtime.kernels.parameters.parameters import parameters_of
from ...runtime.kernels.shader_source import has_overrides, load_shader, source_text
from ...runtime.values.parse import parse_value
from ...spirv.reflection.reflection_types import BufferBlock
from ...spirv.sources.language import SourceOptions, parse_language
from ...status import InvalidArgumentError
from .workload import WorkloadContext

BUILTIN: Final = "builtin:"
"""The prefix of ``source`` for kernels that come with pumice."""

_MAX_QUEUES: Final = 64
# The segments that the host can sleep in, and the setting that adds the segment to samples.
_NEEDED: Final[Mapping[str, tuple[str, object] | None]] = {
    "update": ("update", True),
    "record": ("record", "each"),
    "wake": None,
    "read": ("read", True),
}


def kernel_code(settings: Mapping[str, Any], folder: Path, minor: int) -> tuple[bytes, str]:
    """Loads the SPIR-V and the name of a target's ``source``, compiled for Vulkan 1.minor."""
    source = str(settings["source"])
    if source.startswith(BUILTIN):
        name = source.removeprefix(BUILTIN)
        return shaders.spirv(name), name.rpartition("/")[2]
    return load_shader(folder / source, source_options(settings, folder), minor=minor)


def kernel_source(settings: Mapping[str, Any], context: WorkloadContext) -> str:
    """Reads the text of a target's ``source``; "" for a module."""
    source = str(settings["source"])
    return (
        ""
        if source.startswith(BUILTIN)
        else source_text(context.folder / source, source_options(settings, context.folder))
    )


def macros(defines: Mapping[str, object]) -> dict[str, str]:
    """Returns macros as C texts: a truth value is 1 or 0."""
    return {name: str(int(value) if isinstance(value, bool) else value) for name, value in defines.items()}


def source_options(settings: Mapping[str, Any], folder: Path) -> SourceOptions:
    """Returns the options with which a target's ``source`` is compiled."""
    language = None if settings.get("language") is None else parse_language(settings["language"])
    values = settings.get("specialization") or {}
    return SourceOptions(
        language=language,
        entry_point=settings.get("entry_point"),
        defines=macros(settings.get("defines") or {}),
        include_dirs=[folder / name for name in settings.get("include_dirs") or ()],
        overrides=constant_values(values) if has_overrides(str(settings["source"]), language) else {},
    )


def bindings_in_order(
    settings: Mapping[str, Any], code: bytes, kernel: str, limits: DeviceLimits
) -> tuple[list[Any], list[BufferBlock | None]]:
    """Returns the descriptions of bindings in the order of a call, which places them by position and name, and the
    layouts of those that are blocks.
    """
    bindings = settings["bindings"]
    if settings["descriptors"] == "address" or not any(
        isinstance(binding, Mapping) and binding.keys() & {"name", "block"} for binding in bindings
    ):
        return list(bindings), []
    parameters = parameters_of(reflect(code).entry_point(settings["entry_point"]), limits)
    named: dict[str, Any] = {}
    for binding in bindings:
        if isinstance(binding, Mapping) and "name" in binding:
            if binding["name"] in named:
                raise InvalidArgumentError(f"two bindings are named {binding['name']}", location="bindings")
            named[binding["name"]] = binding
    unnamed = [binding for binding in bindings if not (isinstance(binding, Mapping) and "name" in binding)]
    placed, _ = Names(parameters, (), kernel).place(unnamed, None, named)
    return list(placed), [next(iter(parameter.binding.blocks), None) for parameter in parameters]


def plan_options(settings: Mapping[str, Any]) -> PlanOptions:
    push = {"auto": None, "sets": False, "push": True, "address": None}[settings["descriptors"]]
    # Too many queues are an error once the device is known.
    queues = min(settings["queues"], _MAX_QUEUES)
    return PlanOptions(
        robust_buffer_access=settings["robust"],
        push_descriptors=push,
        max_compute_queues=queues,
        sanitize=settings["sanitize"] or None,
    )


def specialization_values(settings: Mapping[str, Any], folder: Path) -> dict[int | str, Any]:
    """Returns values of a module's constants by number or name; none for WGSL, whose compiler gets them."""
    return {} if source_options(settings, folder).overrides else constant_values(settings["specialization"])


def constant_values(values: Mapping[str, Any]) -> dict[int | str, Any]:
    """Returns values by number or name, from a setting, whose keys are texts."""
    return {int(name) if name.isdecimal() else name: value for name, value in values.items()}


def push_values(value: object) -> Mapping[str, Any] | Sequence[Any] | None:
    """Returns push constants as ``Kernel`` takes them; None for none."""
    if isinstance(value, Mapping):
        return dict(value) or None
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    return [parse_value(item) if isinstance(item, str) else item for item in value] or None


def view_as_declared(array: DeviceArray, declared: np.dtype[np.generic] | None) -> DeviceArray:
    """Gives a signless integer the sign that the shader declares, as the command line does."""
    dtype = array.dtype
    if declared is not None and {dtype.kind, declared.kind} == {"i", "u"} and dtype.itemsize == declared.itemsize:
        return array.view(declared)
    return array


class PlantedSleep:
    """The settings ``host_sleep`` and ``host_sleep_in``: a sleep in one segment, for tests that it shows there and
    nowhere else.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._seconds = float(settings["host_sleep"])
        self.segment: str = settings["host_sleep_in"]
        if not self._seconds:
            self.segment = ""
            return
        if self.segment not in _NEEDED:
            raise InvalidArgumentError(
                f"the host can sleep in {', '.join(_NEEDED)}; in {self.segment!r} it would change the measurement",
                location="host_sleep_in",
            )
        needed = _NEEDED[self.segment]
        if needed is not None and settings[needed[0]] != needed[1]:
            raise InvalidArgumentError(
                f"samples have no segment {self.segment!r} to sleep in; set {needed[0]} = {json.dumps(needed[1])}",
                location="host_sleep_in",
            )

    def at_end_of(self, segment: str) -> None:
        """Sleeps if this is the chosen segment, at its end, so that the sleep adds to it."""
        if segment == self.segment:
            time.sleep(self._seconds)
