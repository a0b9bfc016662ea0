"""The page on hardware shows the runs that were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.devices.runs import OUTCOMES, PAGE, cause_of, kept, outcomes_in, page, tables

JUNIT = """<testsuites><testsuite>
<testcase classname="a" name="one"/>
<testcase classname="a" name="two"><skipped message="A lacks shaderInt64, shaderInt8"/></testcase>
<testcase classname="a" name="three"><failure message="no"/></testcase>
<testcase classname="a" name="four"><error message="failed on setup"/></testcase>
</testsuite></testsuites>"""


def test_the_page_is_what_the_records_say() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")
    assert kept() and all(f"| `{name}` |" in page() for name in kept())
    assert all(run["failed"] == 0 and run["passed"] > 1000 for run in kept().values())


def test_counts_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "first.xml").write_text(JUNIT)
    (tmp_path / "again.xml").write_text('<testsuite><testcase classname="a" name="three"/></testsuite>')
    found = outcomes_in([tmp_path / "first.xml", tmp_path / "again.xml"])
    assert [outcome for outcome, _ in found.values()] == ["passed", "skipped", "passed", "failed"]


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("A lacks shaderInt64, shaderInt8", "shaderInt64, shaderInt8"),
        ("A cannot run this: capability Int64 needs the feature shaderInt64: the driver lacks it", "shaderInt64"),
        ("A has subgroups of 4; the kernel is for 8", "the device has subgroups of 4"),
        ("no C compiler", "no C compiler"),
    ],
)
def test_reasons_are_counted_by_feature(reason: str, cause: str) -> None:
    assert cause_of(reason, "A") == cause


def test_tables() -> None:
    run = {"driver": "D 1", "vulkan": "1.3.0", "layers": "", **dict.fromkeys(OUTCOMES, 1234), "folders": ["a", "b"]}
    shown = tables({"r": {**run, "causes": dict.fromkeys(map(str, range(14)), 1)}, "s": {**run, "causes": {"x_y": 1}}})
    assert "| `r` | D 1 | 1.3.0 | none | 1,234 | 1,234 | 1,234 |" in shown
    assert "`r` ran the folders a, b." in shown
    assert "| 2 | 2 other reasons |" in shown and r"| 1 | x_y |" in shown
