"""Runs the notebooks of docs/notebooks: ``python tests/support/notebooks.py [NAME …]`` stores their outputs in them.

What depends on the machine or on when it ran, besides the outputs themselves, is not stored.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))

_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path: Path, folder: Path) -> NotebookNode:
    """A notebook with the outputs of its cells, run in a kernel of its own in a folder.

    Raises:
        CellExecutionError: a cell raised, with its source and its traceback.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}, record_timing=False
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


def main() -> None:
    # Readers need no warning that there was no GPU; whoever has one names it.
    os.environ.setdefault("PUMICE_DEVICE", "vulkan")
    for path in NOTEBOOKS:
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as folder:
                nbformat.write(executed(path, Path(folder)), path)
            print(f"wrote {path.name}, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
