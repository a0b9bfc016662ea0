"""The notebooks of docs/notebooks run without an error, and what is stored in them is what they show."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from support.notebooks import NOTEBOOKS, executed

from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError


def kinds(cell: NotebookNode) -> list[tuple[str, ...]]:
    """What a cell's outputs are, but for what drivers and libraries say on stderr."""
    outputs = [one for one in cell.get("outputs", ()) if one.get("name") != "stderr"]
    return [(one.output_type, one.get("name", ""), *sorted(one.get("data", ()))) for one in outputs]


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"kernel_to_study", "jax_to_profile"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_says_nothing_of_the_machine_it_ran_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"} and notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info == {"name": "python"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any(cell.metadata for cell in notebook.cells)
    outputs = json.dumps([cell.outputs for cell in code])
    folders = {tempfile.gettempdir(), "/tmp", "/home", str(Path.home()), str(path.parents[2]), "ipykernel"} - {"/"}
    assert not [folder for folder in folders if folder in outputs]
    assert not [one for cell in code for one in cell.outputs if one.get("name") == "stderr"]


@pytest.mark.sample(1)
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stores(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = nbformat.read(path, as_version=4)
    source = "\n".join(cell.source for cell in stored.cells)
    if "import jax\n" in source and importlib.util.find_spec("jax") is None:
        pytest.skip("needs jax: pip install -e '.[dev]'")
    try:
        find_compiler(Language.GLSL)
    except UnavailableError as error:
        pytest.skip(error.message)
    monkeypatch.setenv("PUMICE_DEVICE", "vulkan")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # its history
    found = executed(path, tmp_path)
    assert [kinds(cell) for cell in found.cells] == [kinds(cell) for cell in stored.cells]
