"""A store of a study that has begun a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.study.stored_results import POINTS, STUDY

from pumice.study.results.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path, STUDY, POINTS) as fresh:
        fresh.begin_run({"pumice": "0"})
        yield fresh
