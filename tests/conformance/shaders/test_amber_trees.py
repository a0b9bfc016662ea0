"""Khronos's compute tests in Amber, run, and written and read again.

They are read from the trees that ``PUMICE_CTS_TREE`` and ``PUMICE_AMBER_TREE`` name, and skipped without.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from conformance.shaders.amber_trees import (
    AMBER_FOLDER,
    AMBER_VARIABLE,
    CTS_FOLDER,
    CTS_VARIABLE,
    compute_scripts,
    write_list,
)
from conformance.shaders.amber_trees import Script as TreeScript
from support.case_pool import run_cases
from support.source_trees import named_tree, opened_tree

from pumice.amber import UnsupportedScriptError, format_script, parse, parse_text
from pumice.amber.script import Run, Script, Write

_PLACE = re.compile(r"^\d+:\d+: ")
TREES = [
    pytest.param(
        variable, folder, least, id=name, marks=pytest.mark.skipif(not named_tree(variable), reason=f"no {variable}")
    )
    for name, variable, folder, least in (
        ("cts", CTS_VARIABLE, CTS_FOLDER, 400),
        ("amber", AMBER_VARIABLE, AMBER_FOLDER, 70),
    )
]


def run_tree(scripts: list[TreeScript]) -> int:
    """Runs scripts in worker processes, so that a driver that crashes or hangs costs one; returns how many failed.

    Prints each failure with its cause, the reasons of skips, and how many scripts passed in each folder.
    """
    with tempfile.TemporaryDirectory(prefix="amber-") as name:
        write_list(Path(name), scripts)
        tally = run_cases("conformance.shaders.amber_trees:ScriptCases", len(scripts), folder=Path(name), hang_s=120.0)
    counts: dict[str, Counter[str]] = {}
    skips: Counter[str] = Counter()
    failed = 0
    crashes = {index: detail for index, result, detail in tally.wrong}
    for index, script in enumerate(scripts):
        result = tally.results.get(index, "crash")
        detail = tally.details.get(index, crashes.get(index, ""))
        if result in ("skipped", "unsupported"):
            skips[_PLACE.sub("", detail.splitlines()[0].split(": ", 1)[-1])] += 1
        elif result != "passed":
            failed += 1
            print(f"FAILED {script.name}: {detail[:600]}", flush=True)
        counts.setdefault(script.folder, Counter())[result] += 1
    for reason, count in skips.most_common():
        print(f"skipped {count:4}: {reason[:200]}")
    total: Counter[str] = Counter()
    for folder, by_result in sorted(counts.items()):
        total += by_result
        print(f"{folder:34} {_figures(by_result)}")
    print(f"{'total':34} {_figures(total)}, in {tally.seconds:.0f} s")
    return failed


def _figures(counts: Counter[str]) -> str:
    parts = [f"{counts['passed']:4} of {counts.total():4} passed"]
    parts += [f"{count} {result}" for result, count in sorted(counts.items()) if result != "passed"]
    return ", ".join(parts)


@pytest.mark.vulkan
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("variable", "folder", "least"), TREES)
def test_every_script_that_the_device_allows_passes(variable: str, folder: str, least: int) -> None:
    tree = named_tree(variable)
    assert tree is not None
    with opened_tree(tree, (folder,)) as root:
        scripts = compute_scripts(root, folder)
        assert len(scripts) >= least
        assert run_tree(scripts) == 0


def can_be_written(script: Script) -> bool:
    return not any(isinstance(c, Write) or (isinstance(c, Run) and c.entry_point) for c in script.commands)


@pytest.mark.parametrize(("variable", "folder", "least"), TREES)
def test_scripts_are_written_as_they_were_read(variable: str, folder: str, least: int) -> None:
    tree = named_tree(variable)
    assert tree is not None
    written = 0
    with opened_tree(tree, (folder,)) as root:
        for one in compute_scripts(root, folder):
            try:
                script = parse(one.path)
            except UnsupportedScriptError:
                continue
            if can_be_written(script):
                text = format_script(script)
                again = parse_text(text, str(one.path), one.path.parent)
                assert format_script(again) == text, one.path
                assert {n: b.data for n, b in again.buffers.items()} == {n: b.data for n, b in script.buffers.items()}
                written += 1
    assert written > least / 3


def test_templates_and_other_pipelines_are_no_scripts(tmp_path: Path) -> None:
    texts = {
        "compute": "#!amber\nPIPELINE compute p\nEND\n",
        "both": "#!amber\nPIPELINE compute p\nEND\nPIPELINE graphics g\nEND\n",
        "template": "#!amber\n{device_features}\nPIPELINE compute p\nEND\n",
        "old": "[compute shader]\n[test]\n",
        "drawn": "[vertex shader passthrough]\n[fragment shader]\n[compute shader]\n",
    }
    folder = tmp_path / "cases"
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.amber").write_text(text)
    assert [one.path.stem for one in compute_scripts(tmp_path, "cases")] == ["compute", "old"]
