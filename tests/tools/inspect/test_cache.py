"""``pumice cache`` shows what is kept, and deletes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.base import cache
from pumice.tools.cli import main


def test_it_is_shown_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PUMICE_CACHE", raising=False)
    for number in range(3):
        assert cache.CachedFile("things", number).store(bytes(1000))
    shown = CliRunner().invoke(main, ["cache"])
    assert shown.exit_code == 0 and str(tmp_path) in shown.stdout
    (row,) = [line.split() for line in shown.stdout.splitlines() if line.strip().startswith("things")]
    assert row == ["things", "3", f"{sum(p.stat().st_size for p in tmp_path.rglob('*.entry')):,}"]
    cleared = CliRunner().invoke(main, ["cache", "--clear"])
    assert cleared.exit_code == 0 and "things" not in cleared.stdout
    assert not [*tmp_path.rglob("*.entry")]


def test_clearing_deletes_no_files_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody names a folder whose entries are a blog's."""
    post = tmp_path / "entries" / "2024" / "post.md"
    post.parent.mkdir(parents=True)
    post.write_text("hello", encoding="utf-8")
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    assert CliRunner().invoke(main, ["cache", "--clear"]).exit_code == 0
    assert post.read_text(encoding="utf-8") == "hello"


def test_it_may_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE", "0")
    shown = CliRunner().invoke(main, ["cache"])
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert shown.stderr == "nothing is kept: PUMICE_CACHE switches it off\n"


def test_it_says_why_it_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "file"))
    shown = CliRunner().invoke(main, ["cache"])
    assert shown.exit_code == 0 and f"nothing is kept: {tmp_path / 'file' / 'entries-2'} cannot be made" in shown.stderr
