"""Differences of two studies besides their times: machines, versions, commits and settings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from ...definition.process import Process
from ..storage.stored_results import StoredResults
from .revision import revision_of

_MAX_DIFFERENCES: Final = 5
_MAX_TEXT: Final = 40


def result_differences(a: StoredResults, b: StoredResults) -> list[str]:
    """Lists the differences of two results besides their times."""
    texts: list[str] = []
    for name, left, right in (
        ("device", {device.name for device in a.devices}, {device.name for device in b.devices}),
        ("driver", {device.driver for device in a.devices}, {device.driver for device in b.devices}),
        ("pumice", {run.pumice for run in a.runs}, {run.pumice for run in b.runs}),
        ("host", {run.host for run in a.runs}, {run.host for run in b.runs}),
        ("commit", _commits(a, "revision"), _commits(b, "revision")),
    ):
        texts += _one_each(name, left, right)
    for key in ("sampling", "targets"):
        if text := _differing(a.study.get(key), b.study.get(key)):
            texts.append(f"the studies differ in {key}: {text}")
    return texts


def side_differences(results: StoredResults) -> list[str]:
    """Lists the differences of a study's sides besides their sources, which are meant to differ."""
    texts = [*dict.fromkeys(note.text for note in results.notes if note.kind == "sides")]
    texts += _one_each("commit", *(_commits(results, name) for name in ("against_revision", "revision")))
    other = results.study.get("against")
    if isinstance(other, Mapping):
        for part, default in (("targets", None), ("process", dataclasses.asdict(Process()))):
            first, second = (side.get(part, default) for side in (other, results.study))
            if text := _differing(first, second, without="source"):
                texts.append(f"the sides differ in {part}: {text}")
    return texts


def _one_each(name: str, left: set[str], right: set[str]) -> list[str]:
    """Returns ``["host: a and b"]``; empty if both sets are equal, or one is empty."""
    sides = [", ".join(sorted(side)) for side in (left, right)]
    return [f"{name}: {' and '.join(sides)}"] if all(sides) and left != right else []


def _commits(results: StoredResults, name: str) -> set[str]:
    """Returns the commits that the runs recorded of a side: ``"revision"`` or ``"against_revision"``."""
    revisions = [revision_of(run.environment.get(name)) for run in results.runs]
    return {revision.name for revision in revisions if revision is not None}


def _differing(a: object, b: object, *, without: str = "") -> str:
    """Lists the settings in which parts of two studies differ, with their values; empty for none. The setting
    ``without`` is left out, and names of one file in two trees are equal.
    """
    first, second = _settings(a, ""), _settings(b, "")
    names = [
        name
        for name in {**first, **second}
        if not _is_same(first.get(name), second.get(name)) and name.rpartition(".")[2] != without
    ]
    texts = [f"{name} {_text(first, name)} and {_text(second, name)}" for name in names[:_MAX_DIFFERENCES]]
    more = f", and {len(names) - _MAX_DIFFERENCES} more" if len(names) > _MAX_DIFFERENCES else ""
    return "; ".join(texts) + more


def _is_same(a: object, b: object) -> bool:
    """Whether two values are equal, or name one place: relative to a tree in one study, absolute in the other, as of a
    revision in a worktree.
    """
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, str) and isinstance(b, str) and a != b:
        inner, outer = sorted((PurePath(a), PurePath(b)), key=PurePath.is_absolute)
        within = outer.parts[-len(inner.parts) :] == inner.parts
        return bool(inner.parts) and within and outer.is_absolute() and not inner.is_absolute()
    return a == b


def _settings(value: object, name: str) -> dict[str, object]:
    """Flattens a part of a study to settings by name, such as ``"mul.push.factor"``."""
    if isinstance(value, Mapping):
        named = value.items()
    elif isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value):
        named = {item["name"]: {key: inner for key, inner in item.items() if key != "name"} for item in value}.items()
    else:
        return {name: value}
    return {
        key: item for part, inner in named for key, item in _settings(inner, f"{name}.{part}" if name else part).items()
    }


def _text(settings: Mapping[str, object], name: str) -> str:
    text = json.dumps(settings[name]) if name in settings else "-"
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
