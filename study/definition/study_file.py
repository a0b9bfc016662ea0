"""Study files: studies as TOML, and as the JSON values that results store.

Both have the schema in docs/reference/study.md. The order of axes, derived figures and targets matters.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ...base.files import reading_errors
from ...status import IncompatibleError, InvalidArgumentError, NotFoundError, shown
from .axis import read_axis
from .messages import did_you_mean, located
from .settings import Process
from .study import FORMAT_VERSION, Study, Target, make_sampling

_PLAIN: Final = (
    *("name", "title", "question", "reading", "devices", "fit", "compare", "reference", "baseline", "peaks"),
)
_KEYS: Final = ("version", *_PLAIN, "sampling", "axes", "derived", "targets", "against", "process")
_OF_PROCESS: Final = ("python", "variables")
_OWN: Final = ("name", "kind", "measure", "derived")
"""Keys of a target that are not settings."""


def load_study(path: str | Path, builtin: Path | None = None) -> Study:
    """Loads the study of a file.

    Args:
        path: a TOML file, or the name of a built-in study, such as ``"batch-depth"``; a file has precedence.
        builtin: the folder of the built-in studies, or ``None``.

    Raises:
        NotFoundError: there is no such file or built-in study; the message lists the built-in studies.
        PermissionDeniedError, UnavailableError: the file cannot be read.
        InvalidArgumentError: the text is not a study; the location is file and line, or file and table.
        IncompatibleError: the study has a newer version of the format.
    """
    file = Path(path)
    is_name = file.name == str(path) or file.is_dir()
    if builtin is not None and not file.is_file() and file.suffix != ".toml" and is_name:
        names = sorted(file_.stem for file_ in builtin.glob("*.toml"))
        if str(path) not in names:
            folder = "; the folder of that name has no results.sqlite" if file.is_dir() else ""
            raise NotFoundError(
                f"no file and no built-in study is named {shown(str(path))}{did_you_mean(str(path), names)}{folder}; "
                f"built-in studies are {', '.join(names) or 'none'}"
            )
        file = builtin / f"{path}.toml"
    with reading_errors(file):
        data = file.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"expected TOML, which is UTF-8; byte {error.start} is not", location=str(file)
        ) from None
    return parse_study(text, file.parent, source=str(file))


def parse_study(text: str, folder: Path | None = None, *, source: str = "") -> Study:
    """Parses the study of a TOML text.

    Args:
        text: the study as TOML.
        folder: the folder that its file names are relative to; ``None`` for the working folder.
        source: the file's name, for messages.

    Raises:
        InvalidArgumentError, IncompatibleError: the text is not a study, as for ``load_study``.
    """
    source = source or "study"
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise InvalidArgumentError("expected TOML: lists or tables are nested too deeply", location=source) from None
    except ValueError as error:  # TOMLDecodeError, or an int of more digits than Python converts
        position = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line = int(position[1]) if position else text.count("\n") + 1
        reason = str(error).partition(" (at ")[0].partition(";")[0]
        column = f", column {position[2]}" if position else ""
        raise InvalidArgumentError(f"expected TOML: {reason}{column}", location=f"{source}:{line}") from None
    return study_from_dict(data, folder, text=text, source=source)


def study_from_dict(
    data: Mapping[str, object], folder: Path | None = None, *, text: str | None = None, source: str = ""
) -> Study:
    """Makes the study of a TOML file's tables, or of ``study_as_dict``; arguments and errors as ``parse_study``."""
    with located(f"{source or 'study'}:"):
        if not isinstance(data, Mapping):
            raise InvalidArgumentError(f"expected a table, got {shown(data)}")
        _check_version(data)
        for key in data:
            if key not in _KEYS:
                raise InvalidArgumentError(
                    f"a study has no {shown(key)}{did_you_mean(str(key), _KEYS)}; it has {', '.join(_KEYS)}"
                )
        if "name" not in data:
            raise InvalidArgumentError('a study has a name, such as name = "batch-depth"', location="name")
        fields: dict[str, Any] = {key: data[key] for key in _PLAIN if key in data}
        sampling = _table(data, "sampling")
        with located("sampling"):
            fields["sampling"] = make_sampling(sampling)
        axes = fields["axes"] = []
        for name, value in _table(data, "axes").items():
            with located(f"axes.{name}"):
                axes.append(read_axis(name, value))
        fields["derived"] = _table(data, "derived")
        fields["targets"] = _targets(data.get("targets", ()))
        if "process" in data:
            with located("process"):
                fields["process"] = _process(_table(data, "process"))
        if "against" in data:
            with located("against"):
                fields["against"] = study_from_dict(_table(data, "against"), folder)
    return Study(**fields, folder=folder if folder is not None else Path(), text=text, source=source)


def study_as_dict(study: Study) -> dict[str, object]:
    """Returns the study as JSON values. They are equal for equal studies: folder and text, which change no measurement,
    are left out.
    """
    targets: list[dict[str, object]] = []
    for target in study.targets:
        own: dict[str, object] = {"measure": target.measure} if target.measure is not None else {}
        if target.derived:
            own["derived"] = dict(target.derived)
        targets.append({"name": target.name, "kind": target.kind, **own, **target.settings})
    data: dict[str, object] = {"version": FORMAT_VERSION}
    for key in _PLAIN:
        value = getattr(study, key)
        if value is not None:
            data[key] = list(value) if isinstance(value, tuple) else value
    data |= {
        "sampling": asdict(study.sampling),
        "axes": {
            axis.name: [list(value) if isinstance(value, tuple) else value for value in axis.values]
            for axis in study.axes
        },
        "derived": dict(study.derived),
        "targets": targets,
    }
    if study.process is not None:
        data["process"] = asdict(study.process)
    if study.against is not None:
        data["against"] = study_as_dict(study.against)
    return data


def _check_version(data: Mapping[str, object]) -> None:
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        came = shown(version) if "version" in data else "none"
        raise InvalidArgumentError(
            f"expected the version of the format, version = {FORMAT_VERSION}; got {came}. The smallest study has that, "
            "a name, and [[targets]] with name, kind and source: docs/reference/study.md",
            location="version",
        )
    if version > FORMAT_VERSION:
        raise IncompatibleError(
            f"the study is written in version {version} of the format, and this pumice reads versions up to "
            f"{FORMAT_VERSION}; update pumice",
            location="version",
        )


def _table(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    table = data.get(key, {})
    if not isinstance(table, Mapping):
        raise InvalidArgumentError(f"expected a table, got {shown(table)}", location=key)
    return table


def _process(table: Mapping[str, Any]) -> Process:
    for key in table:
        if key not in _OF_PROCESS:
            raise InvalidArgumentError(
                f"a process has no {shown(key)}{did_you_mean(key, _OF_PROCESS)}; it has {' and '.join(_OF_PROCESS)}"
            )
    return Process(**table)


def _targets(value: object) -> tuple[Target, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(f"expected [[targets]], a list of tables, got {shown(value)}", location="targets")
    targets = []
    for i, table in enumerate(value):
        with located(f"targets[{i}]"):
            if not isinstance(table, Mapping):
                raise InvalidArgumentError(f"expected a table, got {shown(table)}")
            for key in ("name", "kind"):
                if key not in table:
                    raise InvalidArgumentError(f"a target has a {key}; got {', '.join(table) or 'nothing'}")
            settings = {key: setting for key, setting in table.items() if key not in _OWN}
            derived = _table(table, "derived") if "derived" in table else {}
            targets.append(Target(table["name"], table["kind"], settings, table.get("measure"), derived))  # type: ignore[arg-type]  # checked by the study
    return tuple(targets)
