"""Inputs that once ended badly end well: refused with a clear error, or accepted."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
from fuzz import CORPUS, KINDS
from judging import SeededCases, judged
from support.case_pool import WRONG, open_cases

TEXTS = (".mlir", ".pbtxt", ".toml", ".comp", ".txt")


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_once_ended_badly(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        cases = open_cases(KINDS[path.parent.name].opener, tmp_path)
        assert isinstance(cases, SeededCases)
        made = path.read_text(encoding="utf-8") if path.suffix in TEXTS else path.read_bytes()
        outcome = judged(lambda: cases.use(made))
        assert outcome.result not in WRONG, outcome.detail
        cases.close()


def test_every_folder_is_a_kind() -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= KINDS.keys()
