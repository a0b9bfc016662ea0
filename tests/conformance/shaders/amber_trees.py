"""The Amber scripts of VK-GL-CTS and of google/amber that run compute pipelines, and what a driver fails by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.case_pool import Outcome

from pumice.amber.report import Outcome as ScriptOutcome
from pumice.amber.running import Devices

CTS_VARIABLE: Final = "PUMICE_CTS_TREE"
AMBER_VARIABLE: Final = "PUMICE_AMBER_TREE"
CTS_FOLDER: Final = "external/vulkancts/data/vulkan/amber"
AMBER_FOLDER: Final = "tests/cases"

_SCRIPT_LIST: Final = "scripts.txt"
_OTHER_PIPELINES: Final = re.compile(r"^\s*PIPELINE\s+(?:graphics|raytracing)\b", re.MULTILINE)
_OLD_SECTION: Final = re.compile(r"^\[compute shader", re.MULTILINE)
_OLD_GRAPHICS: Final = re.compile(r"^\[(?:vertex|fragment) shader", re.MULTILINE)
_TEMPLATE: Final = re.compile(r"^\s*\{\w+\}\s*$", re.MULTILINE)
EXPECTED_TO_FAIL: Final = ".expect_fail."
"""In the names of scripts of google/amber whose expectations must not hold."""


@dataclass(frozen=True)
class Script:
    """A script; ``folder`` is what figures are counted by."""

    path: Path
    folder: str

    @property
    def name(self) -> str:
        """Its folder and file name."""
        return f"{self.folder}/{self.path.name}"


def compute_scripts(root: Path, folder: str) -> list[Script]:
    """The scripts of a tree that have compute pipelines and no other, in order; templates of generators are none."""
    return sorted(_compute_scripts(root / folder), key=lambda script: script.path)


def _compute_scripts(base: Path) -> Iterator[Script]:
    for path in (*base.rglob("*.amber"), *base.rglob("*.vkscript")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if text.startswith("#!amber"):
            wanted = not _OTHER_PIPELINES.search(text) and "PIPELINE" in text and not _TEMPLATE.search(text)
        else:
            wanted = bool(_OLD_SECTION.search(text)) and not _OLD_GRAPHICS.search(text)
        if wanted:
            folder = path.parent.relative_to(base).as_posix()
            yield Script(path, folder.split("/")[0] if folder != "." else "cases")


class ScriptCases:
    """The cases of `case_pool`: scripts by number, from the list that `write_list` left in a folder."""

    def __init__(self, folder: Path) -> None:
        self._paths = (folder / _SCRIPT_LIST).read_text(encoding="utf-8").splitlines()
        self._devices = Devices(None)

    def run(self, seed: int, index: int) -> Outcome:
        """Runs a script; the detail is its report without the path."""
        try:
            report = self._devices.run(self._paths[index])
        except Exception as error:
            return Outcome("run", "bug", f"{type(error).__name__}: {error}")
        result, text = report.outcome.value, report.format().removeprefix(f"{report.path}: ")
        if EXPECTED_TO_FAIL in Path(report.path).name and report.outcome in (
            ScriptOutcome.FAILED,
            ScriptOutcome.PASSED,
        ):
            result = "passed" if report.outcome is ScriptOutcome.FAILED else "failed"
        return Outcome("run", result, text)

    def close(self) -> None:
        """Closes the devices."""
        self._devices.close()


def write_list(folder: Path, scripts: list[Script]) -> None:
    """Leaves the scripts in a folder for `ScriptCases`."""
    (folder / _SCRIPT_LIST).write_text("\n".join(str(script.path) for script in scripts), encoding="utf-8")
