"""Environment variables with a wrong value are errors that say what was expected."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pumice.base.switches import switch, warn_of_misspelt
from pumice.status import InvalidArgumentError
from pumice.tools.cli import main


@pytest.mark.parametrize(
    ("value", "says"), [(" On ", True), ("1", True), ("no", False), ("FALSE", False), ("", None), (None, None)]
)
def test_values(value: str | None, says: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUMICE_X", raising=False)
    if value is not None:
        monkeypatch.setenv("PUMICE_X", value)
    assert switch("PUMICE_X") is says


@pytest.mark.parametrize("value", ["2", "maybe", " ", "\n", "x" * 10_000])
def test_wrong_values(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_X", value)
    with pytest.raises(InvalidArgumentError, match=r"PUMICE_X is .*; expected one of 1, .* off, no$") as caught:
        switch("PUMICE_X")
    assert len(caught.value.message) < 500


def test_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_DEBUG", "maybe")
    done = CliRunner().invoke(main, ["cache"])
    assert done.exit_code == 1 and done.stderr.startswith("error: the environment variable PUMICE_DEBUG is 'maybe'")


def test_of_the_second_tier() -> None:
    """It is read when the virtual machine is imported."""
    done = subprocess.run(
        [sys.executable, "-c", "import pumice.vm.machine_code.settings"],
        env={**os.environ, "PUMICE_MACHINE_CODE": "on"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "PUMICE_MACHINE_CODE is 'on'; expected off, always, or nothing" in done.stderr.splitlines()[-1]


def test_of_misspelt_names(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for name in [name for name in os.environ if name.startswith("PUMICE_")]:
        monkeypatch.delenv(name)
    # The last four are read, somebody's own, or not of pumice.
    for name in (*_MISSPELT, "PUMICE_DEVICE", "PUMICE_TEST_CACHE", "PUMICE_STABLEHLO_TREE", "MY_PUMICE_WAITS"):
        monkeypatch.setenv(name, "1")
    warn_of_misspelt.cache_clear()
    warn_of_misspelt()
    warn_of_misspelt()
    meant = sorted(_MISSPELT.items())
    assert caplog.messages == [f"the environment variable {one} is not read; did you mean {two}?" for one, two in meant]


_MISSPELT = {
    "PUMICE_VALIDATE": "PUMICE_VALIDATION",
    "PUMICE_CACHEDIR": "PUMICE_CACHE_DIR",
    "PUMICE_DEVCE": "PUMICE_DEVICE",
    "PUMICE_SANITISE": "PUMICE_SANITIZE",
    "PUMICE_WAITS": "PUMICE_WAIT",
}
