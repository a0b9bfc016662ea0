"""Captures through RenderDoc's API, with a stub library that follows the header and records its calls."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice import shaders
from pumice.study.runs import capture
from pumice.tools.cli import main

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

# The order of the functions is that of RENDERDOC_API_1_1_2 in renderdoc_app.h.
LIBRARY = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static char path[4096];
static int started, ended, captures;
static void unused(void) {}
static void set_path(const char *text) { snprintf(path, sizeof path, "%s_frame1.rdc", text); }
static uint32_t count(void) { return captures; }
static uint32_t get(uint32_t index, char *name, uint32_t *length, uint64_t *time) {
  if (index >= (uint32_t)captures) return 0;
  if (name) strcpy(name, path);
  if (length) *length = strlen(path) + 1;
  return 1;
}
static void start(void *device, void *window) { started++; }
static uint32_t end(void *device, void *window) {
  ended++;
  if (!CAPTURES) return 0;
  FILE *file = fopen(path, "w");
  fprintf(file, "capture %d %d", started, ended);
  fclose(file);
  captures++;
  return 1;
}
static struct {
  void *GetAPIVersion, *SetCaptureOptionU32, *SetCaptureOptionF32, *GetCaptureOptionU32, *GetCaptureOptionF32;
  void *SetFocusToggleKeys, *SetCaptureKeys, *GetOverlayBits, *MaskOverlayBits, *RemoveHooks, *UnloadCrashHandler;
  void *SetCaptureFilePathTemplate, *GetCaptureFilePathTemplate, *GetNumCaptures, *GetCapture, *TriggerCapture;
  void *IsTargetControlConnected, *LaunchReplayUI, *SetActiveWindow, *StartFrameCapture, *IsFrameCapturing;
  void *EndFrameCapture, *TriggerMultiFrameCapture;
} api = {
  unused, unused, unused, unused, unused, unused, unused, unused, unused, unused, unused,
  set_path, unused, count, get, unused, unused, unused, unused, start, unused, end, unused,
};
int RENDERDOC_GetAPI(int version, void **out) {
  if (version != 10102 || !NEW) return 0;
  *out = &api;
  return 1;
}
"""


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["bench", str(shaders.path("mul")), "--size", "64", *map(str, arguments)])


def library(folder: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> None:
    """Loads the stub library instead of RenderDoc."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make a library with")
    (folder / "made.c").write_text(LIBRARY)
    flags = ("-DCAPTURES=1", "-DNEW=1", *flags)
    subprocess.run([compiler, "-shared", "-fPIC", *flags, "made.c", "-o", "made.so"], check=True, cwd=folder)
    monkeypatch.setattr(capture, "_LIBRARY", str(folder / "made.so"))
    monkeypatch.setenv("ENABLE_VULKAN_RENDERDOC_CAPTURE", "1")  # the command sets it; undone after the test


def test_one_sample_is_captured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library(tmp_path, monkeypatch)
    result = bench("--capture", tmp_path / "new" / "mul.rdc")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "new" / "mul.rdc").read_text() == "capture 1 1"
    assert "captured: " in result.stderr and not result.stdout
    result = bench("--capture", tmp_path / "mul.rdc", "--axis", "batch=1,2")
    assert result.exit_code == 2 and "a capture is of one point, and these are 2" in result.stderr
    assert bench("--capture", tmp_path / "mul.rdc", "--against", shaders.path("mul")).exit_code == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-UCAPTURES", "-DCAPTURES=0"), "captured nothing: its Vulkan layer is not active"),
        (("-UNEW", "-DNEW=0"), "lacks version 1.1.2"),
    ],
)
def test_what_does_not_capture_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: tuple[str, ...], message: str
) -> None:
    library(tmp_path, monkeypatch, *flags)
    result = bench("--capture", tmp_path / "mul.rdc")
    assert result.exit_code == 1 and message in result.stderr
    assert not (tmp_path / "mul.rdc").exists()


def test_without_renderdoc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capture, "_LIBRARY", str(tmp_path / "librenderdoc.so"))
    monkeypatch.setenv("ENABLE_VULKAN_RENDERDOC_CAPTURE", "1")
    result = bench("--capture", tmp_path / "mul.rdc")
    assert result.exit_code == 1 and "RenderDoc cannot be loaded" in result.stderr and "Install it" in result.stderr
