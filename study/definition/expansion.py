"""Expands a study to its points, and derives figures from their measurements."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...status import InvalidArgumentError
from .axis import Axis
from .expression import Template, as_json_value
from .messages import located
from .point import AxisValue, Point
from .study import BASELINE_NAME, Study, Target
from .target_settings import BASELINE_SETTINGS, KINDS, MAX_DISPATCHES, Setting

MAX_POINTS: Final = 100_000
"""The largest number of points of a study, without baselines."""

_BASELINE_MEASURES: Final = ("record", "submit", "queue", "execute", "wake", "device", "total")
_RATES: Final = (("bytes", "GB/s"), ("flops", "GFLOP/s"))


def expand(study: Study, devices: Sequence[str] = ()) -> tuple[Point, ...]:
    """Returns the points of a study, in an order that depends only on the study and the devices.

    Devices vary slowest, then targets, then axes in their order, the last one fastest. A target has points only for
    axes that affect it. Then come the points of the other side that pair with a point of the study by key and device.
    Baselines come last, one for each device and setting.

    Args:
        study: the study to expand.
        devices: the devices' URIs; empty for the study's. An axis ``device`` of the study has precedence.

    Raises:
        InvalidArgumentError: there is no device or a device is repeated, there are more than 100,000 points, a setting
            is missing or wrong at a point, or the other side has no point in common: the message has target, point and
            setting, the location the file and the path in it.
    """
    with located(study.where):
        uris = _devices(study, devices)
        return (*_with_baselines(study, _with_against(study, _points(study, uris), uris)),)


def unpaired(study: Study, devices: Sequence[str] = ()) -> tuple[Point, ...]:
    """Returns the points of the other side that ``expand`` leaves out, as they have no counterpart in the study."""
    if study.against is None:
        return ()
    with located(study.where):
        uris = _devices(study, devices)
        mine = {(point.device, point.key) for point in _points(study, uris)}
        with located("against"):
            return tuple(point for point in _points(study.against, uris) if (point.device, point.key) not in mine)


def _points(study: Study, uris: Sequence[str]) -> list[Point]:
    """Returns the points of one side, without baselines."""
    targets = [(_Settings(study, i), target.axes_used(study)) for i, target in enumerate(study.targets)]
    _check_count(study, uris, [axes for _, axes in targets])
    points: list[Point] = []
    for uri in uris:
        for settings, axes in targets:
            ranges = [
                [(uri,)] if axis.name == "device" else list(zip(*axis.columns.values(), strict=True)) for axis in axes
            ]
            names = [name for axis in axes for name in axis.names]
            for values in itertools.product(*ranges):
                at = dict(zip(names, itertools.chain.from_iterable(values), strict=True))
                points.append(settings.point(len(points), uri, at))
    return points


def _with_against(study: Study, points: list[Point], uris: Sequence[str]) -> list[Point]:
    """Pairs the points with those of the other side that have the same key and device."""
    if study.against is None:
        return points
    with located("against"):
        others = {(point.device, point.key): point for point in _points(study.against, uris)}
    paired = list(points)
    for index, point in enumerate(points):
        other = others.get((point.device, point.key))
        if other is None:
            continue
        if other.measure != point.measure:
            raise InvalidArgumentError(
                f"{point.label} measures {point.measure}, and its other side {other.measure}; set the same measure",
                location="against",
            )
        paired[index] = replace(point, against=len(paired))
        paired.append(replace(other, index=len(paired), is_against=True))
    if len(paired) == len(points):
        theirs = next(iter(others.values())).label
        raise InvalidArgumentError(
            f"no point has a counterpart of the same target and axes on the other side: one side has "
            f"{points[0].label}, …, the other {theirs}, …",
            location="against",
        )
    return paired


def derive(
    study: Study, point: Point, measured: Mapping[str, float], peaks: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Returns all derived figures of a point; a baseline has none.

    ``bytes`` and ``flops``, of one dispatch, yield ``GB/s`` and ``GFLOP/s`` over the headline, if no figure has that
    name; so does the setting ``bytes`` of a copy. Figures that need a missing measurement are omitted; undefined ones
    are NaN.

    Args:
        study, point: the study, and the point to derive figures of.
        measured: the seconds of a sample, with all its dispatches, by segment, ``device`` and ``total``. Defaults:
            ``time`` is the point's measure, ``dispatches`` batch times command buffers times submissions in flight.
        peaks: the device's measured peaks by the name of a figure, such as ``{"GB/s": 900.0}``: each yields another
            figure, ``"% of peak GB/s"``.

    Raises:
        InvalidArgumentError: a figure is not a number; the location names it.
    """
    if point.is_baseline:
        return {}
    target = study.target_of(point)
    if point.is_against and study.against is not None:
        study = study.against
    known = {"dispatches": float(dispatches_of(point.settings)), **measured}
    if point.measure in known:
        known.setdefault("time", known[point.measure])
    with located(study.where):
        figures = study.figures_of(target).evaluate(target.kind_of, point.axes, point.settings, known)
    for amount, rate in _RATES:
        count = figures.get(amount, point.settings.get(amount) if target.kind == "copy" else None)
        if rate not in figures and "time" in known and isinstance(count, (int, float)):
            seconds = known["time"]
            figures[rate] = count * known["dispatches"] / seconds / 1e9 if seconds > 0 else math.nan
    for name, peak in (peaks or {}).items():
        if name in figures:
            figures[f"% of peak {name}"] = 100 * figures[name] / peak if peak > 0 else math.nan
    return figures


def dispatches_of(settings: Mapping[str, object]) -> int:
    """Returns the number of dispatches, calls or copies in a sample with these settings."""
    values = [settings.get(name) for name in ("batch", "command_buffers", "in_flight")]
    return math.prod(max(value, 1) for value in values if isinstance(value, int))


class _Settings:
    """The settings of one target, evaluated point by point."""

    def __init__(self, study: Study, index: int) -> None:
        self._study = study
        self._target = target = study.targets[index]
        self._where = f"targets[{index}]"
        self._templates = {name: Template(value) for name, value in target.settings.items()}
        # Each value is evaluated and checked once, and kept by setting and the values of its axes.
        self._known: dict[tuple[AxisValue, ...], object] = {}

    def point(self, index: int, device: str, axes: Mapping[str, AxisValue]) -> Point:
        target = self._target
        settings = {setting.name: self._value(setting, axes) for setting in target.kind_of.settings}
        _fill_in(target, settings, self._study)
        try:
            if (dispatches := dispatches_of(settings)) > MAX_DISPATCHES:
                raise InvalidArgumentError(
                    f"batch times command_buffers times in_flight is {dispatches} dispatches in a sample, expected at "
                    f"most {MAX_DISPATCHES}",
                    location=self._where,
                )
            derived = self._study.figures_of(target).evaluate(target.kind_of, axes, settings)
        except InvalidArgumentError as error:
            raise _at(target, axes, error, "") from None
        return Point(index, target.name, device, dict(axes), settings, derived, target.headline)

    def _value(self, setting: Setting, axes: Mapping[str, AxisValue]) -> object:
        name = setting.name
        template = self._templates.get(name)
        names = template.names if template is not None else {name} & axes.keys()
        key = (name, *(axes[name] for name in names))
        if key in self._known:
            return self._known[key]
        where = f"axes.{name}" if template is None and name in axes else f"{self._where}.{name}"
        try:
            with located(where):
                if template is not None:
                    value = setting.check(template.fill(axes))
                elif name in axes:
                    value = setting.check(axes[name])
                elif setting.required:
                    raise InvalidArgumentError(
                        f"expected {setting.type.text}: {setting.doc.replace('`', '')}; got none"
                    )
                else:
                    value = as_json_value(setting.default)
        except InvalidArgumentError as error:
            raise _at(self._target, axes, error, name) from None
        self._known[key] = value
        return value


def _at(
    target: Target, axes: Mapping[str, AxisValue], error: InvalidArgumentError, setting: str
) -> InvalidArgumentError:
    """Adds the target, the point and the setting to an error's message."""
    values = ", ".join(f"{name}={value}" for name, value in axes.items())
    at = f" at {values}" if values else ""
    path = f"{setting}: " if setting else ""
    return InvalidArgumentError(f"target {target.name!r}{at}: {path}{error.message}", location=error.location)


def _fill_in(target: Target, settings: dict[str, object], study: Study) -> None:
    """Fills in defaults that are the value of another setting."""
    if target.kind == "kernel" and settings["cache"] is None:
        settings["cache"] = study.sampling.cache
    for name in ("bindings", "inputs"):
        buffers = settings.get(name)
        if isinstance(buffers, list):
            dtype = settings.get("dtype", "f32")
            settings[name] = [
                {
                    key: binding.get(key, dtype)
                    for key in ("name", "shape", "dtype", "init")
                    if key in binding or key == "dtype"
                }
                if isinstance(binding, dict) and "block" not in binding and "format" not in binding
                else binding
                for binding in buffers
            ]


def _devices(study: Study, devices: Sequence[str]) -> tuple[str, ...]:
    for axis in study.axes:
        if axis.name == "device":
            return tuple(str(value) for value in axis.values)
    uris = tuple(devices) or study.devices
    if not uris:
        raise InvalidArgumentError(
            "expected at least one device, such as vulkan, the best one; got none", location="devices"
        )
    if len(set(uris)) != len(uris):
        raise InvalidArgumentError(f"expected different devices, got {', '.join(uris)}", location="devices")
    return uris


def _check_count(study: Study, devices: Sequence[str], axes: Sequence[Sequence[Axis]]) -> None:
    counts = [math.prod(len(axis.values) for axis in used if axis.name != "device") for used in axes]
    total = len(devices) * sum(counts)
    if total > MAX_POINTS:
        parts = [f"{len(devices)} device(s)", f"{len(study.targets)} target(s)"]
        parts += [f"{axis.name} ({len(axis.values)})" for axis in study.axes if axis.name != "device"]
        raise InvalidArgumentError(
            f"the study has {total} points, from {', '.join(parts)}; "
            f"at most {MAX_POINTS} are possible: shorten an axis",
            location="axes",
        )


def _with_baselines(study: Study, points: list[Point]) -> list[Point]:
    if not study.baseline:
        return points
    defaults = {setting.name: as_json_value(setting.default) for setting in KINDS["kernel"].settings}
    defaults |= {"source": "builtin:builtin/empty", "cache": study.sampling.cache, "groups": 1}
    measured: list[Point] = []
    baselines: dict[str, Point] = {}
    for point in points:
        if not KINDS[study.kind_of(point)].baseline:
            measured.append(point)
            continue
        shared = {name: point.settings[name] for name in BASELINE_SETTINGS}
        shared["groups"] = _canonical_groups(shared["groups"])
        # The headline of a baseline is the point's, if the empty kernel has it.
        measure = point.measure if point.measure in _BASELINE_MEASURES else "total"
        key = json.dumps([point.device, measure, shared])
        if key not in baselines:
            # These axes distinguish baselines, within a run and between runs.
            axes: dict[str, AxisValue] = {
                name: value
                if isinstance(value, (int, float, str))
                else "x".join(map(str, value if isinstance(value, list) else ()))
                for name, value in shared.items()
                if value != defaults[name]
            }
            if measure != "execute":
                axes["measure"] = measure
            baselines[key] = Point(
                len(points) + len(baselines),
                BASELINE_NAME,
                point.device,
                axes,
                {**defaults, **shared},
                measure=measure,
                is_baseline=True,
            )
        measured.append(replace(point, baseline=baselines[key].index))
    return [*measured, *baselines.values()]


def _canonical_groups(groups: object) -> object:
    """Returns 1 for inferred groups, and an int if all dimensions but the first are 1."""
    if not isinstance(groups, list):
        return 1 if groups is None else groups
    kept = list(groups)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return kept[0] if len(kept) == 1 else kept
