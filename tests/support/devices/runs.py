"""Outcomes of the suite by driver and layers: recorded from JUnit files, and shown as the tables of docs/hardware.md.

    python tests/support/devices/runs.py record NAME FILE.xml …   keeps the counts of a run in tests/data/runs
    python tests/support/devices/runs.py write                    writes the tables from all that is kept

``record`` has to run on the driver and under the layers of the run: it asks them for their names and versions. Where
several files have a test, the last one counts.
"""

from __future__ import annotations

import collections
import json
import re
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pumice.hal_vulkan.instance.driver import shared_driver
from pumice.hal_vulkan.vulkan.functions import InstanceFunctions, text
from pumice.hal_vulkan.vulkan.results import listed
from pumice.hal_vulkan.vulkan.validation import LAYER
from pumice.testing.requirements import driver_text

ROOT: Final = Path(__file__).parents[3]
RUNS: Final = ROOT / "tests" / "data" / "runs"
PAGE: Final = ROOT / "docs" / "hardware.md"
OUTCOMES: Final = ("passed", "skipped", "failed")

_MARKED: Final = re.compile(r"(<!-- generated: runs -->\n)(.*?)(<!-- end: runs -->)", re.DOTALL)
_FEATURE: Final = re.compile(r"(?:needs the feature|lacks) (?!it\b)((?:\w+, )*\w+)")
_SHOWN: Final = 12


def outcomes_in(paths: Iterable[Path]) -> dict[str, tuple[str, str]]:
    """Returns the outcome of each test and why it skipped."""
    outcomes: dict[str, tuple[str, str]] = {}
    for path in paths:
        for case in ET.parse(path).iter("testcase"):
            skip = case.find("skipped")
            failed = case.find("failure") is not None or case.find("error") is not None
            outcome = "failed" if failed else "passed" if skip is None else "skipped"
            reason = "" if skip is None else skip.get("message", "")
            outcomes[f"{case.get('classname')}::{case.get('name')}"] = outcome, reason
    return outcomes


def cause_of(reason: str, device: str) -> str:
    """Returns the features that a test skipped for, or its reason without the device's name."""
    features = sorted({name for match in _FEATURE.finditer(reason) for name in match[1].split(", ")})
    return ", ".join(features) or reason.replace(device, "the device").partition("; ")[0]


def record(paths: Iterable[Path]) -> dict[str, Any]:
    """Returns the counts of a run, with what it ran on."""
    driver = shared_driver()
    profile = driver.profiles[driver.select()]
    outcomes = outcomes_in(paths)
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    skips = (cause_of(reason, profile.name) for outcome, reason in outcomes.values() if outcome == "skipped")
    causes = collections.Counter(skips)
    return {
        "driver": driver_text(profile),
        "device": profile.name,
        "vulkan": ".".join(map(str, profile.api_version)),
        "layers": _layers() if driver.validation else "",
        "folders": sorted({name.removeprefix("tests.").partition(".")[0] for name in outcomes}),
        **{outcome: counts[outcome] for outcome in OUTCOMES},
        "causes": dict(causes.most_common()),
    }


def _layers() -> str:
    query = InstanceFunctions().vkEnumerateInstanceLayerProperties
    (layer,) = (each for each in listed(query, "VkLayerProperties", "layers") if text(each.layerName) == LAYER)
    return f"{layer.specVersion >> 22 & 0x7F}.{layer.specVersion >> 12 & 0x3FF}.{layer.specVersion & 0xFFF}"


def tables(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the page's tables: the counts of each run, and what its tests skipped for."""
    lines = ["| run | driver | Vulkan | layers | passed | skipped | failed |", "| -- | -- | -- | -- | -- | -- | -- |"]
    for name, run in sorted(runs.items()):
        counts = " | ".join(f"{run[outcome]:,}" for outcome in OUTCOMES)
        lines.append(f"| `{name}` | {run['driver']} | {run['vulkan']} | {run['layers'] or 'none'} | {counts} |")
    for name, run in sorted(runs.items()):
        folders = f"`{name}` ran the folders {', '.join(run['folders'])}."
        lines += ["", *textwrap.wrap(folders, 120, break_on_hyphens=False)]
    for name, run in sorted(runs.items()):
        causes = list(run["causes"].items())
        lines += ["", f"`{name}` skips", "", "| tests | for want of |", "| -- | -- |"]
        lines += [f"| {count} | {_cell(cause)} |" for cause, count in causes[:_SHOWN]]
        if causes[_SHOWN:]:
            lines.append(f"| {sum(count for _, count in causes[_SHOWN:])} | {len(causes) - _SHOWN} other reasons |")
    return "\n".join(lines) + "\n"


def _cell(cause: str) -> str:
    return cause.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")


def kept() -> dict[str, dict[str, Any]]:
    """Returns the recorded runs by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RUNS.glob("*.json"))}


def page() -> str:
    """Returns docs/hardware.md with its tables written anew."""
    return _MARKED.sub(lambda match: f"{match[1]}\n{tables(kept())}\n{match[3]}", PAGE.read_text(encoding="utf-8"))


def main(arguments: list[str]) -> None:
    """Records a run, or writes the tables."""
    match arguments:
        case ["record", name, first, *more]:
            RUNS.mkdir(exist_ok=True)
            run = record(map(Path, (first, *more)))
            (RUNS / f"{name}.json").write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print({key: value for key, value in run.items() if key != "causes"})
        case ["write"]:
            PAGE.write_text(page(), encoding="utf-8")
        case _:
            raise SystemExit("usage: runs.py record NAME FILE.xml …, or runs.py write")


if __name__ == "__main__":
    main(sys.argv[1:])
