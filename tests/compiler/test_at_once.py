"""The compiler, its tools and its readers in many threads at once: every result is that of one thread alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.soak import rounds

AT_ONCE = Path(__file__).parents[1] / "support" / "compiler" / "at_once.py"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(rounds(2, 40)))
def test_threads_that_race_get_what_one_alone_gets(seed: int, tmp_path: Path) -> None:
    """In a new process each, where no table is filled and no module is imported; without and with a cache on disk."""
    environment = {**os.environ, "PUMICE_CACHE": str(seed % 2), "PUMICE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(AT_ONCE), str(seed), "3"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
