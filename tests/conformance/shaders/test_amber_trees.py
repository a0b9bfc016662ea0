"""Khronos's compute tests in Amber, run, and written and read again.

They are read from the trees that ``PUMICE_CTS_TREE`` and ``PUMICE_AMBER_TREE`` name, and skipped without.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.shaders.amber_trees import AMBER_FOLDER, AMBER_VARIABLE, CTS_FOLDER, CTS_VARIABLE, compute_scripts
from conformance.shaders.run_amber_trees import run_tree
from support.source_trees import named_tree, opened_tree

from pumice.amber import UnsupportedScriptError, format_script, parse, parse_text
from pumice.amber.script import Run, Script, Write

TREES = [
    pytest.param(
        variable, folder, least, id=name, marks=pytest.mark.skipif(not named_tree(variable), reason=f"no {variable}")
    )
    for name, variable, folder, least in (
        ("cts", CTS_VARIABLE, CTS_FOLDER, 400),
        ("amber", AMBER_VARIABLE, AMBER_FOLDER, 70),
    )
]


@pytest.mark.vulkan
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("variable", "folder", "least"), TREES)
def test_every_script_that_the_device_allows_passes(variable: str, folder: str, least: int) -> None:
    tree = named_tree(variable)
    assert tree is not None
    with opened_tree(tree, (folder,)) as root:
        scripts = compute_scripts(root, folder)
        assert len(scripts) >= least
        assert run_tree(scripts, None, 2) == 0


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
