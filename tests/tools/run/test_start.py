"""A run that finds everything kept imports and starts little, and what is kept is checked before it is believed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

ROOT = Path(__file__).resolve().parents[3]
MODULE = ROOT / "examples" / "digits" / "digits.vmfb"
ARGUMENTS = ["run", str(MODULE), "--input=1x28x28x1xf32=1", "--device=vulkan"]
# What a run needs only the first time, or not at all.
HEAVY = {
    "ctypes.util", "hashlib", "importlib.metadata", "ml_dtypes", "platformdirs", "pumice.compiler.ir",
    "pumice.compiler.pipeline", "pumice.runtime.elementwise", "pumice.runtime.images.image",
    "pumice.runtime.kernels.kernel", "pumice.runtime.profiling.profile", "pumice.spirv.binary.grammar",
    "pumice.spirv.checks.capabilities", "pumice.spirv.checks.validation", "pumice.spirv.instrument.passes",
    "pumice.spirv.reflection.reflect", "pumice.tools.run.arguments", "pumice.vm.bytecode.decoder",
    "pumice.vm.bytecode.verifier", "pumice.vm.translation.analysis", "pumice.vm.translation.translator", "rich",
    "statistics", "subprocess", "tempfile",
}  # fmt: skip
FIRST_TIME = {"pumice.spirv.reflection.reflect", "pumice.vm.bytecode.verifier", "pumice.vm.translation.translator"}
MOST_MODULES = 260

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="owners and modes as POSIX has them"),
    pytest.mark.sample(2),
]


def environment(place: Path) -> dict[str, str]:
    changed = {
        "PUMICE_CACHE_DIR": str(place / "cache"),
        "PUMICE_CACHE": "1",
        "PUMICE_VALIDATION": "0",
        "XDG_STATE_HOME": str(place / "state"),
    }
    return os.environ | changed


def run(env: dict[str, str], *arguments: str) -> tuple[str, set[str]]:
    """What a run prints, and the modules that it imports."""
    script = f"import sys; sys.argv = {['pumice', *arguments]!r}\nfrom pumice.tools.cli import main; main()"
    command = [sys.executable, "-X", "importtime", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return done.stdout, {line.rpartition("|")[2].strip() for line in lines}


def test_the_second_run_imports_little(tmp_path: Path) -> None:
    env = environment(tmp_path)
    first, imported = run(env, *ARGUMENTS)
    assert imported >= FIRST_TIME, "or this test would find nothing"
    second, imported = run(env, *ARGUMENTS)
    assert first == second and "1xi32=" in first
    assert not imported & HEAVY
    assert len([name for name in imported if name.startswith("pumice")]) <= MOST_MODULES


def _flip(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))


def _of_others(path: Path) -> None:
    path.chmod(0o666)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.sample(1)
@pytest.mark.parametrize("planted", [False, True])
def test_what_is_damaged_or_planted_is_made_anew(tmp_path: Path, planted: bool) -> None:
    right, _ = run(environment(tmp_path / "right"), *ARGUMENTS)
    place = tmp_path / ("another" if planted else "right")
    if planted:  # whole, under the right names, by another user's pumice
        shutil.copytree(tmp_path / "right" / "cache", place / "cache")
    else:
        kept = [path for path in (place / "cache").rglob("*") if path.is_file()]
        assert {path.parents[1].name for path in kept} >= {"shaders", "vm"}
        for path, spoil in zip(kept, itertools.cycle((_flip, _of_others, _empty)), strict=False):
            spoil(path)
    again, imported = run(environment(place), *ARGUMENTS)
    assert again == right and imported >= FIRST_TIME
    _, imported = run(environment(place), *ARGUMENTS)
    assert not imported & FIRST_TIME, "and kept"


def test_without_a_place_to_keep_anything_results_are_the_same(tmp_path: Path) -> None:
    right, _ = run(environment(tmp_path), *ARGUMENTS)
    env = environment(tmp_path) | {"HOME": "/nonexistent"}
    for variable in ("PUMICE_CACHE_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        env.pop(variable, None)
    results, imported = run(env, *ARGUMENTS)
    assert results == right and imported >= FIRST_TIME


def test_a_kernel_whose_source_was_compiled_starts_no_program(tmp_path: Path) -> None:
    try:
        glslang = find_compiler(Language.GLSL).path
    except UnavailableError as missing:
        pytest.skip(missing.message)
    calls = tmp_path / "calls"
    wrapper = tmp_path / "glslangValidator"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {glslang} "$@"\n')
    wrapper.chmod(0o755)
    env = environment(tmp_path) | {"PUMICE_GLSLC": str(wrapper)}
    command = ["run", str(ROOT / "shaders" / "mul.comp"), "-b", "0=4xf32=1,2,3,4", "-b", "1=4xf32=2", "-b", "2=4xf32"]
    first, _ = run(env, *command)
    assert calls.read_text().count("\n") >= 2  # its version, and the compile
    calls.write_text("")
    second, _ = run(env, *command)
    assert first == second and "2,4,6,8" in first.replace(" ", ",") and calls.read_text() == ""
