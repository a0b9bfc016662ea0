"""The store on full disks and read-only media: what was committed stays, and can be read."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.study.stored_results import POINTS, STUDY, next_block, query, sample_count, samples

from pumice.status import (
    PermissionDeniedError,
    ResourceExhaustedError,
)
from pumice.study.results.results import Results
from pumice.study.results.storage.database import RESULTS_FILE
from pumice.study.results.storage.store import Store

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="uses limits, users or mounts of Linux")
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can do it")
FILL = """
import resource, signal, sys
sys.path[:0] = {tests!r}
from support.study.stored_results import sample_count
from support.study.stored_results import POINTS, STUDY, samples
from pumice.status import ResourceExhaustedError
from pumice.study.results.storage.store import Store
if {limit}:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
store = Store.create({folder!r}, STUDY, POINTS)
store.begin_run({{}})
kept = 0
try:
    for block in range(100000):
        store.add_samples(0, block, "sample", samples(50, start=kept))
        kept += 50
except ResourceExhaustedError as error:
    print(error)
assert sample_count(store.path.parent, 0) == kept, "what was refused is not there"
print(kept)
sys.stdout.flush()
store.close()
"""


def fill(folder: Path, limit: int) -> int:
    code = FILL.format(tests=[str(Path(__file__).parents[3])], folder=str(folder), limit=limit)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    message, kept = answer.stdout.splitlines()
    assert re.match(
        r"RESOURCE_EXHAUSTED: adding samples: .* cannot grow: the disk is full.*make room and resume", message
    )
    return int(kept)


def hold_kept(folder: Path, kept: int) -> None:
    with Results.open(folder) as results:
        assert results.points[0].integers("started_ns").tolist() == list(range(kept)) and kept > 0


@pytest.mark.slow
@linux_only
def test_a_limit_on_file_sizes_keeps_what_was_committed(tmp_path: Path) -> None:
    kept = fill(tmp_path, 512 << 10)
    hold_kept(tmp_path, kept)
    with Store.open(tmp_path, STUDY, POINTS) as store:
        store.begin_run({})
        store.add_samples(0, next_block(store.path.parent, 0), "sample", samples(50, start=kept))
    hold_kept(tmp_path, kept + 50)


@pytest.mark.slow
@linux_only
def test_a_full_disk_keeps_what_was_committed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, text=True, check=False
    ).returncode
    if mounted != 0:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        kept = fill(disk / "study", 0)
        hold_kept(disk / "study", kept)
        shutil.copytree(disk / "study", tmp_path / "roomier")
    finally:
        subprocess.run(["umount", disk], check=True)
    with Store.open(tmp_path / "roomier", STUDY, POINTS) as store:
        store.begin_run({})
        store.add_samples(0, next_block(store.path.parent, 0), "sample", samples(50, start=kept))
    hold_kept(tmp_path / "roomier", kept + 50)


def test_a_store_goes_on_when_there_is_room_again(tmp_path: Path, store: Store) -> None:
    store.add_samples(0, 0, "sample", samples(5))
    connection = store._open_connection()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(ResourceExhaustedError, match="disk is full"):
        store.add_samples(0, 1, "sample", samples(1000))
    connection.execute("PRAGMA max_page_count = 1000000")
    store.add_samples(0, 1, "sample", samples(1000, start=5))
    assert sample_count(store.path.parent, 0) == 1005
    numbers = query(tmp_path, "SELECT number FROM samples WHERE point = 0 ORDER BY number")
    assert numbers == [(number,) for number in range(1005)]


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Runs the block as a user who is not the owner; root may write everywhere."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Returns a folder that everybody may read, unlike pytest's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@linux_only
@root_only
def test_a_read_only_folder_can_be_read_and_not_written(open_folder: Path) -> None:
    with Store.create(open_folder, STUDY, POINTS) as store:
        store.begin_run({})
        store.add_samples(0, 0, "sample", samples(3))
    with as_nobody():
        with Results.open(open_folder) as results:
            assert results.points[0].count == 3
        with pytest.raises(PermissionDeniedError, match="read-only"):
            Store.open(open_folder)
        with pytest.raises(PermissionDeniedError, match="cannot be made"):
            Store.create(open_folder / "new", STUDY, POINTS)
    (open_folder / RESULTS_FILE).chmod(0)
    with as_nobody(), pytest.raises(PermissionDeniedError):
        Results.open(open_folder)


@linux_only
@root_only
@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_killed_study_on_read_only_media_can_be_read(open_folder: Path, shared_memory: bool) -> None:
    with Store.create(open_folder / "a", STUDY, POINTS) as store:
        store.begin_run({})
        store.add_samples(0, 0, "sample", samples(3))
        shutil.copytree(open_folder / "a", open_folder / "b")  # as a kill would leave it
    log, shared = (open_folder / "b" / f"{RESULTS_FILE}{end}" for end in ("-wal", "-shm"))
    assert log.stat().st_size > 0
    if not shared_memory:
        shared.unlink()
    with as_nobody(), Results.open(open_folder / "b") as results:
        assert results.points[0].count == 3
