"""Studies: targets, axes and sampling; from a TOML file (``study_file``) or in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shown
from .axis import Axis
from .expression import Template, as_json_value
from .figures import Figures, parse_figures
from .kept_file import KeptFiles
from .messages import did_you_mean, located
from .point import Point, is_number
from .sample import MEASURES
from .settings import Process, Sampling
from .target_settings import KINDS, Kind

FORMAT_VERSION: Final = 1

BASELINE_NAME: Final = "empty kernel"
"""The target name of baseline points."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Target:
    """The kernel, program or operation that a study measures.

    Attributes:
        name: the name in results.
        kind: the kind of its workload, one of ``target_settings.KINDS``.
        settings: the settings of the kind; a string that begins with ``$`` is an expression over the axes, such as
            ``"$n // local_size"``. An axis with a setting's name sets it if the target does not. Copied as JSON values.
        measure: the headline: a segment, ``"device"`` or ``"total"``; ``None`` for the kind's default.
        derived: the figures of this target only, or in place of the study's figures of the same name.

    Raises:
        InvalidArgumentError: a kind, setting or measure is unknown, a value is not JSON's, or a text after a ``$`` is
            not an expression. Other values are checked at each point.
    """

    name: str
    kind: str
    settings: Mapping[str, object] = field(default_factory=dict)
    measure: str | None = None
    derived: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InvalidArgumentError(f"a target has a name, got {shown(self.name)}", location="name")
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            hint = did_you_mean(str(self.kind), KINDS)
            raise InvalidArgumentError(
                f"target {shown(self.name)}: expected one of the kinds {', '.join(KINDS)}; "
                f"got {shown(self.kind)}{hint}",
                location="kind",
            )
        if self.measure is not None and self.measure not in MEASURES:
            raise InvalidArgumentError(
                f"target {shown(self.name)}: expected to measure one of {', '.join(MEASURES)}; "
                f"got {shown(self.measure)}",
                location="measure",
            )
        settings: dict[str, object] = {}
        for name, value in self.settings.items():
            with located(str(name)):
                self.kind_of.find(name)
                settings[name] = as_json_value(value)
                Template(settings[name])
        object.__setattr__(self, "settings", settings)
        object.__setattr__(self, "derived", dict(self.derived))

    @property
    def kind_of(self) -> Kind:
        return KINDS[self.kind]

    @property
    def headline(self) -> str:
        """The name of the headline: a segment, ``"device"`` or ``"total"``."""
        return self.measure or self.kind_of.measure

    def axes_used(self, study: Study) -> tuple[Axis, ...]:
        """Returns the axes that affect the target: they set a setting, or occur in its expressions or figures."""
        used = self.names_used(study)
        return tuple(axis for axis in study.axes if not used.isdisjoint(axis.names))

    def names_used(self, study: Study) -> set[str]:
        """Returns the names that affect the target, including those of axes."""
        names = {name for value in self.settings.values() for name in Template(value).names}
        names.update(set(self.kind_of.names).difference(self.settings))
        names.update(study.figures_of(self).axes_of(self.kind_of, study.axis_names))
        return {*names, "device"}


@dataclass(frozen=True, slots=True)
class Study:
    """A study.

    Attributes:
        name: the name, of letters, digits and ``-_``.
        title: the title, for people.
        question: the question that it answers.
        reading: the advice on how to read its results.
        targets: the measured programs.
        axes: the varied settings; points are all combinations with the targets that an axis affects. The axis
            ``device`` varies the device.
        devices: the devices' URIs; empty for the default device.
        sampling: the settings for the sampling of points.
        derived: the figures by name, each an expression over axes, settings, earlier figures, and the measured seconds
            ``record``, ``submit``, ``queue``, ``execute``, ``wake``, ``read``, ``total`` and ``time`` (the headline),
            such as ``{"bytes": "12 * n", "GB/s": "bytes * dispatches / time / 1e9"}``; ``dispatches`` is their number
            in a sample. ``bytes`` and ``flops``, of one dispatch, yield GB/s, GFLOP/s and shares of measured peaks.
        fit: the names of numeric axes over which a line is fitted to the headline: the slope is the marginal cost, the
            intercept the fixed cost.
        compare: the name of the axis whose values are compared with each other, or ``"target"`` or ``"device"``.
        reference: the value that the others are compared with; ``None`` for the first.
        baseline: whether to measure the empty kernel, too, in the setting of each point that can have a baseline.
        peaks: whether to measure the device's peaks at the start of the run.
        against: the other version; its points are measured in turns with the points of the same key. Of its sampling
            settings only ``cache`` counts, and it has no other version itself. ``None`` to measure one version.
        process: the process in which its points are measured; ``None`` for the process that runs the study. If a side
            has a separate process, so has the other.
        folder: the folder that file names are relative to.
        kept: the files that are measured in place of those on disk, such as those of earlier results.
        text: the TOML text, if it was made from TOML.
        source: the name of the file, for messages, or empty.

    Raises:
        InvalidArgumentError: a field is invalid, an axis has no effect, or an expression has an unknown name. The
            location is that in the file.
    """

    name: str
    targets: tuple[Target, ...]
    axes: tuple[Axis, ...] = ()
    title: str = ""
    question: str = ""
    reading: str = ""
    devices: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    derived: Mapping[str, str] = field(default_factory=dict)
    fit: tuple[str, ...] = ()
    compare: str | None = None
    reference: str | int | float | bool | None = None
    baseline: bool = False
    peaks: bool = False
    against: Study | None = None
    process: Process | None = None
    folder: Path = field(default_factory=Path)
    kept: KeptFiles | None = field(default=None, compare=False, repr=False)
    text: str | None = field(default=None, compare=False, repr=False)
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("targets", "axes", "devices", "fit"):
            value: object = getattr(self, name)
            if not isinstance(value, (list, tuple)):
                raise InvalidArgumentError(f"expected a sequence, got {shown(value)}", location=f"{self.where} {name}")
            object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "derived", dict(self.derived))
        with located(self.where):
            self._check_fields()
            self._check_targets()
            self._check_axes()
            self._check_expressions()
            self._check_axes_used()
            self._check_comparison()
            self._check_against()

    @property
    def where(self) -> str:
        """The prefix of error locations: the file, or the study's name."""
        return f"{self.source or f'study {shown(self.name)}'}:"

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(name for axis in self.axes for name in axis.names)

    def figures_of(self, target: Target) -> Figures:
        """Returns the derived figures of a target, including its own."""
        return parse_figures(*{**self.derived, **target.derived}.items())

    def target_of(self, point: Point) -> Target:
        """Returns the target of a point, on the point's side. InvalidArgumentError: the study has no such target."""
        side = self.against if point.is_against and self.against is not None else self
        for target in side.targets:
            if target.name == point.target:
                return target
        raise InvalidArgumentError(
            f"{self.where} no target is named {point.target!r}; the point belongs to another study"
        )

    def kind_of(self, point: Point) -> str:
        """Returns the kind of a point's target; ``"kernel"`` for a baseline."""
        return "kernel" if point.is_baseline else self.target_of(point).kind

    @property
    def processes(self) -> tuple[Process, ...]:
        """The processes of this side and, if there is one, of the other side; empty if the process that runs the study
        measures.
        """
        sides = [side.process for side in (self, self.against) if side is not None]
        return tuple(process or Process() for process in sides) if any(sides) else ()

    def folder_of(self, point: Point) -> Path:
        """Returns the folder that a point's file names are relative to."""
        return self.against.folder if point.is_against and self.against is not None else self.folder

    def with_axes(self, *axes: Axis) -> Study:
        """Replaces and adds axes; an axis of several names replaces the axes of any of them."""
        replacements = {axis.name: axis for axis in axes}
        taken = {name for axis in axes for name in axis.names}
        kept = (replacements.pop(axis.name, axis) for axis in self.axes)
        chosen = tuple(axis for axis in kept if axis in axes or taken.isdisjoint(axis.names))
        lost = [name for axis in self.axes if axis not in chosen for name in axis.names if name not in taken]
        if lost:
            raise InvalidArgumentError(
                f"the study varies {', '.join(lost)} together with {', '.join(sorted(taken))}; give the values of "
                "both, such as tx,ty=8:8,16:4"
            )
        return replace(self, axes=(*chosen, *replacements.values()))

    def with_sampling(self, **overrides: object) -> Study:
        """Returns the study with other sampling settings."""
        return replace(self, sampling=make_sampling(overrides, self.sampling))

    def _check_fields(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidArgumentError(
                f"expected a name of letters, digits, - and _, such as batch-depth; got {shown(self.name)}",
                location="name",
            )
        for name, kind, text in (
            ("title", str, "a text"),
            ("question", str, "a text"),
            ("reading", str, "a text"),
            ("sampling", Sampling, "a Sampling"),
            ("baseline", bool, "true or false"),
            ("peaks", bool, "true or false"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise InvalidArgumentError(f"expected {text}, got {shown(getattr(self, name))}", location=name)
        for i, uri in enumerate(self.devices):
            with located(f"devices[{i}]"):
                if not isinstance(uri, str) or not uri:
                    raise InvalidArgumentError(f"expected a device's URI, got {shown(uri)}")
                if uri in self.devices[:i]:
                    raise InvalidArgumentError(f"device {shown(uri)} is given twice")

    def _check_targets(self) -> None:
        if not self.targets:
            raise InvalidArgumentError("a study has at least one target, got none", location="targets")
        for i, target in enumerate(self.targets):
            with located(f"targets[{i}]"):
                if not isinstance(target, Target):
                    raise InvalidArgumentError(f"expected a Target, got {shown(target)}")
                if any(target.name == other.name for other in self.targets[:i]):
                    raise InvalidArgumentError(f"two targets are named {shown(target.name)}; results tell them by name")
                if self.baseline and target.name == BASELINE_NAME:
                    raise InvalidArgumentError(f"{BASELINE_NAME!r} is the baseline's name; give the target another")

    def _check_axes(self) -> None:
        for i, axis in enumerate(self.axes):
            if not isinstance(axis, Axis):
                raise InvalidArgumentError(f"expected an Axis, got {shown(axis)}", location="axes")
            for name in axis.names:
                if any(name in other.names for other in self.axes[:i]):
                    raise InvalidArgumentError(f"two axes are named {shown(name)}", location="axes")
            if axis.name == "device" and self.devices:
                raise InvalidArgumentError("the axis device and devices exclude each other", location="axes.device")
            if axis.name == "device" and not all(isinstance(value, str) and value for value in axis.values):
                raise InvalidArgumentError(f"expected devices' URIs, got {shown(axis.values)}", location="axes.device")

    def _check_expressions(self) -> None:
        for i, target in enumerate(self.targets):
            for name, value in target.settings.items():
                for path, expression in Template(value).expressions:
                    with located(f"targets[{i}].{name}"), located(path):
                        expression.check_names(self.axis_names)
        kinds = [target.kind_of for target in self.targets]
        parse_figures(*self.derived.items()).check_names(kinds, self.axis_names)
        for i, target in enumerate(self.targets):
            if target.derived:
                with located(f"targets[{i}]"):
                    self.figures_of(target).check_names(kinds, self.axis_names)

    def _check_axes_used(self) -> None:
        used = {name for target in self.targets for name in target.names_used(self)}
        kinds = [KINDS[name] for name in dict.fromkeys(target.kind for target in self.targets)]
        for name in self.axis_names:
            if name in used:
                continue
            owners = [kind.name for kind in kinds if name in kind.names]
            message = (
                f"axis {shown(name)} has no effect: every target of kind {' and '.join(owners)} sets {name} itself; "
                f'remove it there, or write {name} = "${name}"'
            )
            if not owners:
                hint = did_you_mean(name, [setting for kind in kinds for setting in kind.names])
                unknown = f"unknown axis {shown(name)}: no setting of kind {' or '.join(kind.name for kind in kinds)}"
                message = f'{unknown} has that name{hint}, and no expression uses it, such as "${name}" for a setting'
            raise InvalidArgumentError(message, location=f"axes.{name}")

    def _check_comparison(self) -> None:
        values = {name: column for axis in self.axes for name, column in axis.columns.items()}
        for i, name in enumerate(self.fit):
            with located(f"fit[{i}]"):
                if not isinstance(name, str) or name not in values:
                    hint, known = did_you_mean(str(name), values), ", ".join(values) or "none"
                    raise InvalidArgumentError(
                        f"expected the name of an axis, got {shown(name)}{hint}; axes are {known}"
                    )
                if not all(map(is_number, values[name])):
                    raise InvalidArgumentError(
                        f"axis {shown(name)} has values that are not numbers; a line cannot be fitted"
                    )
        values["target"] = tuple(target.name for target in self.targets)
        values.setdefault("device", self.devices)
        if self.compare is not None and (not isinstance(self.compare, str) or self.compare not in values):
            hint = did_you_mean(str(self.compare), values)
            raise InvalidArgumentError(
                f"expected the name of an axis, or target or device, got {shown(self.compare)}{hint}; "
                f"axes are {', '.join(self.axis_names)}",
                location="compare",
            )
        if self.reference is None:
            return
        if self.compare is None:
            raise InvalidArgumentError("a reference needs something to compare; set compare", location="reference")
        known_values = values[self.compare]
        # The device may be chosen when the study is run.
        if self.reference not in known_values and (known_values or self.compare != "device"):
            raise InvalidArgumentError(
                f"expected one of the values that are compared, {', '.join(map(repr, known_values))}; "
                f"got {shown(self.reference)}",
                location="reference",
            )

    def _check_against(self) -> None:
        other = self.against
        if other is None:
            return
        with located("against"):
            if not isinstance(other, Study):
                raise InvalidArgumentError(f"expected a Study, got {shown(other)}")
            if other.against is not None:
                raise InvalidArgumentError("expected a study of one side; it is measured against another itself")
            if other.devices and set(other.devices) != set(self.devices):
                raise InvalidArgumentError(
                    "both sides are measured on the same devices, in turns: expected "
                    f"{', '.join(self.devices) or 'none'}, got {', '.join(other.devices)}. To compare devices, measure "
                    'one study on both and use compare = "device"'
                )


def make_sampling(fields: Mapping[str, object], base: Sampling | None = None) -> Sampling:
    """Makes sampling settings from ``base`` or the defaults with some fields replaced. InvalidArgumentError: a wrong
    name or value.
    """
    names = Sampling.names()
    for name in fields:
        if name not in names:
            hint = did_you_mean(str(name), names)
            raise InvalidArgumentError(f"sampling has no {shown(name)}{hint}; it has {', '.join(names)}")
    values: Any = fields
    return replace(base or Sampling(), **values)
