"""The page about TensorFlow lists the operations that are translated."""

from __future__ import annotations

from pathlib import Path

from pumice.compiler.frontends.graphdef.operations import OPERATIONS, ROOMS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "tensorflow.md"


def test_the_table_has_every_operation() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    wanted = [f"| {name} | {' '.join(sorted(room))} |" for name, room in ROOMS.items()]
    assert rows == wanted
    assert set().union(*ROOMS.values()) == set(OPERATIONS)
