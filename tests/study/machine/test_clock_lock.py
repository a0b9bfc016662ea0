"""Clock locking with a simulated NVML: clocks are reset on every exit, and reported after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from pumice import shaders
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.status import FailedPreconditionError, InvalidArgumentError, PermissionDeniedError, UnavailableError
from pumice.study.machine import clock_lock
from pumice.study.machine.clock_lock import ClockLock, left_locked, locked_clocks
from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan

NVML = """
import types

class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(f"NVML error {value}")
        self.value = value

def made(log, refuse=0, default=1410):
    def lock(handle, low, high):
        if refuse:
            raise NVMLError(refuse)
        log(f"lock {low} {high}")
    def reset(handle):
        if refuse:
            raise NVMLError(refuse)
        log("reset")
    def clock(handle, kind):
        if not default:
            raise NVMLError(3)
        return default
    module = types.ModuleType("pynvml")
    vars(module).update(
        NVMLError=NVMLError, NVML_ERROR_NO_PERMISSION=4, NVML_ERROR_INVALID_ARGUMENT=2, NVML_CLOCK_GRAPHICS=0,
        nvmlInit=lambda: None, nvmlDeviceGetHandleByUUID=str, nvmlDeviceSetGpuLockedClocks=lock,
        nvmlDeviceResetGpuLockedClocks=reset, nvmlDeviceGetDefaultApplicationsClock=clock,
    )
    return module
"""
SCRIPT = """
import dataclasses, sys, time
from pumice.hal_vulkan import shared_driver
from pumice.study.machine import clock_lock
from pumice.study.machine.clock_lock import ClockLock, locked_clocks
from pathlib import Path
clock_lock._folder = lambda: Path(sys.argv[3])
def log(text):
    with open(sys.argv[1], "a") as file:
        file.write(text + "\\n")
sys.modules["pynvml"] = made(log)
profile = dataclasses.replace(shared_driver().profiles[0], vendor_id=0x10DE)
if sys.argv[2] == "exit":
    lock = ClockLock(profile, 900)
    sys.exit()
with locked_clocks([profile], 900):
    print("locked", flush=True)
    time.sleep(60)
"""
_made: dict[str, Callable[..., types.ModuleType]] = {}
exec(NVML, _made)  # type: ignore[arg-type]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Returns the calls to a simulated NVML; the test has its own folder for markers."""
    done: list[str] = []
    monkeypatch.setitem(sys.modules, "pynvml", _made["made"](done.append))
    monkeypatch.setattr(clock_lock, "_folder", lambda: tmp_path)
    return done


@pytest.fixture
def profile(driver: Driver) -> DeviceProfile:
    return replace(driver.profiles[0], vendor_id=0x10DE)


def test_locked_and_reset_whatever_happens(log: list[str], profile: DeviceProfile, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked_clocks([profile], None) as mhz:
        assert mhz == [1410] and log == ["lock 1410 1410"] and len(list(tmp_path.iterdir())) == 1
        with pytest.raises(FailedPreconditionError, match=f"process {os.getpid()} has locked"):
            ClockLock(profile, 900)
        raise ZeroDivisionError
    assert log == ["lock 1410 1410", "reset"] and not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (4, PermissionDeniedError, "needs root. Run as root"),
        (2, InvalidArgumentError, "has no clock of 900 MHz"),
        (3, UnavailableError, "cannot lock its clocks: NVML error 3"),
    ],
)
def test_refusals_say_what_to_do(
    log: list[str],
    profile: DeviceProfile,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: int,
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _made["made"](log.append, refuse=code))
    with pytest.raises(error, match=message):
        ClockLock(profile, 900)
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "pynvml", _made["made"](log.append, default=0))
    with pytest.raises(UnavailableError, match="say which: --lock-clocks MHZ"):
        ClockLock(profile)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "SIGKILL", "exit"])
def test_a_process_resets_on_its_way_out_and_a_killed_one_is_told_of(
    end: str, log: list[str], profile: DeviceProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, temporary = tmp_path / "log", tmp_path / "tmp"
    monkeypatch.setattr(clock_lock, "_folder", lambda: temporary)
    process = subprocess.Popen(
        [sys.executable, "-c", NVML + SCRIPT, str(done), end, str(temporary)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        if end != "exit":
            assert process.stdout.readline() == b"locked\n"
            process.send_signal(getattr(signal, end))
        process.wait(60)
    if end != "SIGKILL":
        assert done.read_text().split("\n") == ["lock 900 900", "reset", ""]
        assert not left_locked() and not list(temporary.iterdir())
        return
    assert done.read_text() == "lock 900 900\n"
    (told,) = left_locked()
    assert f"still locked to 900 MHz by process {process.pid}" in told
    assert f"sudo nvidia-smi -i GPU-{profile.device_uuid} -rgc" in told
    # Any run reports the marker; one that locks clocks takes it over and resets them at its end.
    fast = ["time_limit=0.01", "max_samples=2", "min_samples=2", "noise_limit=1e9", "reference=false", "warmup_time=0"]
    settings = [word for setting in fast for word in ("--set", setting)]
    result = CliRunner().invoke(main, ["bench", str(shaders.path("mul")), "--size", "8", "--no-baseline", *settings])
    assert "still locked to 900 MHz" in result.stderr
    ClockLock(profile, 800).close()
    assert log == ["lock 800 800", "reset"] and not left_locked()


def test_a_restart_of_the_machine_unlocks(
    log: list[str], profile: DeviceProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = ClockLock(profile, 900)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: 0.0)  # another process of this number
    assert len(left_locked()) == 1
    began = psutil.boot_time()
    monkeypatch.setattr(psutil, "boot_time", lambda: began + 3600)
    assert not left_locked()
    lock.close()


@pytest.mark.skipif(sys.platform == "win32", reason="files of POSIX")
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "huge", "deep", "writable"])
def test_planted_markers_neither_hang_nor_count(
    kind: str, log: list[str], profile: DeviceProfile, tmp_path: Path
) -> None:
    lock = ClockLock(profile, 900)
    marker = next(tmp_path.iterdir())
    kept = marker.rename(tmp_path / "kept")
    if kind == "pipe":
        os.mkfifo(marker)
    elif kind == "link":
        marker.symlink_to(kept)
    elif kind == "folder":
        marker.mkdir()
    elif kind == "huge":
        marker.write_bytes(b" " * 5000 + kept.read_bytes())
    elif kind == "deep":
        marker.write_bytes(b"[" * 4000)
    else:
        marker.write_bytes(kept.read_bytes())
        marker.chmod(0o666)
    assert clock_lock._read_marker(marker) is None and not left_locked()
    assert clock_lock._read_marker(kept) is None, "a marker under another name"
    if kind == "folder":
        marker.rmdir()
    lock.close()


@pytest.mark.skipif(sys.platform == "win32", reason="the folder is the user's own there")
def test_no_marker_is_in_a_folder_that_all_users_share(driver: Driver) -> None:
    assert clock_lock._folder() == Path("/run/pumice")


def test_other_devices_and_wrong_clocks_are_refused(driver: Driver) -> None:
    for value, status, message in (
        ("fast", 2, "expected a number of MHz, got fast"),
        ("900", 1, "leave --lock-clocks"),
    ):
        result = CliRunner().invoke(main, ["bench", str(shaders.path("mul")), "--lock-clocks", value])
        assert (result.exit_code, result.stdout) == (status, "") and message in result.stderr
