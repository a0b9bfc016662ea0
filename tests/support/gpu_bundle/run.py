"""Tries pumice on this machine: ``python3.12 run.py [RESULTS]``, in the folder of the unpacked bundle.

It runs `pumice check`, the suite's device tests that take little time, and the benchmarks, each for its share of
``--minutes``, and writes what they say into the folder RESULTS, or that of the environment variable OUT. It installs
nothing, and needs Python 3.12 and a Vulkan driver: wheels are unpacked beside it, and a loader is only taken from here
where the machine has none. The exit status is 0 if the check and the tests are good.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
SITE = HERE / "site"
CHECKOUT = HERE / "checkout"
VULKAN = HERE / "vulkan"
# Of the minutes, until when each part may run.
SHARES = {"check": 0.45, "tests": 0.75, "benchmarks": 1.0}
TESTS = ("hal", "hal_vulkan", "shaders", "runtime", "compiler", "leaks", "amber")
# What they import is not in the bundle.
UNTESTED = (
    *("compiler/passes/formulas/test_special_functions.py", "runtime/images/test_image_kernels.py"),
    *("runtime/parameters/test_gguf.py", "runtime/sessions/test_session_docs.py"),
)
BENCHMARKS = (
    ("submit_wait", ()),
    ("kernel_call", ()),
    ("generated_kernels", ("--rounds", "3", "--seconds", "1")),
    ("call_latency", ()),
)
MANIFESTS = ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")
# What NVIDIA's driver is called where a container has its libraries and not its manifest.
NVIDIA = ("libGLX_nvidia.so.0", "libEGL_nvidia.so.0")
ENDING_S = 20
TIME_UP = "its time was up"


def main() -> int:
    """Runs the parts; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=Path(os.environ.get("OUT", "results")))
    parser.add_argument("--minutes", type=float, default=14.0, help="for all of it (default: 14)")
    parser.add_argument("--device", help="the device's URI; the best by default")
    parser.add_argument("--only", choices=[*SHARES], action="append", help="only this part; may be repeated")
    options = parser.parse_args()
    results = options.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    unpack()
    environment = environment_for(results)
    if options.device:
        environment["PUMICE_DEVICE"] = options.device
    summary = {}
    for part, share in SHARES.items():
        if options.only and part not in options.only:
            continue
        end = begin + 60 * options.minutes * (1.0 if options.only else share)
        for name, command in commands_of(part, results, end):
            step = run(name, command, results, environment, end)
            summary[name] = step
            print(f"{name}: {step['how']} ({step['seconds']} s)", flush=True)
            (results / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    bad = [name for name in ("check", "tests") if name in summary and not is_good(name, summary[name], results)]
    print(f"results are in {results}" + (f"; not good: {', '.join(bad)}" if bad else ""))
    return 1 if bad else 0


def is_good(name: str, step: dict[str, int | float | str | None], results: Path) -> bool:
    """Whether the check or the tests found nothing; tests whose time was up are judged by those that ran."""
    report = results / "tests.xml"
    if name == "tests" and step["how"] == TIME_UP and report.exists():
        suite = ElementTree.parse(report).getroot().find("testsuite")
        return suite is not None and suite.get("failures") == suite.get("errors") == "0"
    return step["status"] == 0


def unpack() -> None:
    """Unpacks the wheels; they have neither scripts nor data that matter."""
    if (SITE / "done").exists():
        return
    for wheel in sorted((HERE / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(SITE)
    for tool in SITE.glob("iree/_runtime_libs/iree-*"):
        tool.chmod(0o755)
    for name in ("cc", "iree-compile"):
        path = HERE / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "prebuilt.py"} "$@"\n')
        path.chmod(0o755)
    (SITE / "done").touch()


def environment_for(results: Path) -> dict[str, str]:
    """Returns the environment of the parts: this machine's Vulkan, and from the bundle what it lacks."""
    libraries, notes = [VULKAN / "tools" / "usr/lib/x86_64-linux-gnu"], {}
    for group, library in (("loader", "libvulkan.so.1"), ("x11", "libX11.so.6")):
        is_there = loads(library)
        notes[library] = "this machine's" if is_there else "the bundle's"
        if not is_there:
            libraries.append(VULKAN / group / "usr/lib/x86_64-linux-gnu")
    search = os.pathsep.join([*map(str, libraries), os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(os.pathsep)
    layers = VULKAN / "tools" / "usr/share/vulkan/explicit_layer.d"
    path = [str(HERE / "bin"), str(VULKAN / "tools" / "usr/bin"), os.environ.get("PATH", os.defpath)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SITE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "PATH": os.pathsep.join(path),
        "LD_LIBRARY_PATH": search,
        "PUMICE_CACHE_DIR": str(HERE / "cache"),
    }
    if not any(
        layer.is_file() for folder in MANIFESTS for layer in Path(folder).parent.glob("explicit_layer.d/*.json")
    ):
        environment["VK_LAYER_PATH"] = str(layers)
        notes["validation layer"] = "the bundle's"
    manifest = nvidia_manifest()
    if manifest is not None:
        environment["VK_DRIVER_FILES"] = environment["VK_ICD_FILENAMES"] = str(manifest)
        notes["driver's manifest"] = "written here: the machine has NVIDIA's libraries and no manifest"
    (results / "machine.json").write_text(json.dumps(notes, indent=1) + "\n")
    return environment


def loads(library: str) -> bool:
    """Whether the machine has a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def nvidia_manifest() -> Path | None:
    """Returns a manifest of NVIDIA's driver where there is a driver, but none of any driver; else None."""
    named = any(os.environ.get(name) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"))
    if named or any(file for folder in MANIFESTS for file in Path(folder).glob("*.json")):
        return None
    library = next((name for name in NVIDIA if loads_beside_x11(name)), None)
    if library is None:
        return None
    manifest = HERE / "nvidia_icd.json"
    content = {"file_format_version": "1.0.0", "ICD": {"library_path": library, "api_version": "1.3.0"}}
    manifest.write_text(json.dumps(content))
    return manifest


def loads_beside_x11(library: str) -> bool:
    """Whether a library loads, in a process that may take the libraries of X from the bundle."""
    search = [os.environ.get("LD_LIBRARY_PATH", ""), str(VULKAN / "x11" / "usr/lib/x86_64-linux-gnu")]
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, search))}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def commands_of(part: str, results: Path, end: float) -> Iterator[tuple[str, Sequence[str]]]:
    """Yields the commands of a part, with names."""
    python = sys.executable
    minutes = max(end - time.monotonic() - ENDING_S, 6) / 60  # so that it ends by itself
    if part == "check":
        program = "from pumice.tools.cli import main; main(prog_name='pumice')"
        yield "check", (python, "-c", program, "check", "-o", str(results / "check"), "--minutes", f"{minutes:.2f}")
    elif part == "tests":
        folders = [f"tests/{name}" for name in TESTS]
        left_out = [f"--ignore=tests/{name}" for name in UNTESTED]
        yield (
            "tests",
            (
                *(python, "-m", "pytest", "-q", "-m", "vulkan and not slow and not peer and not timing"),
                *("--timeout", "60", "--continue-on-collection-errors", "-p", "no:cacheprovider"),
                *(f"--junitxml={results / 'tests.xml'}", *left_out, *folders),
            ),
        )
    else:
        for name, arguments in BENCHMARKS:
            yield name, (python, f"benchmarks/{name}.py", *arguments)


def run(
    name: str, command: Sequence[str], results: Path, environment: dict[str, str], end: float
) -> dict[str, int | float | str | None]:
    """Runs a command until the end of its time; what it prints is in ``NAME.txt``."""
    begin = time.monotonic()
    how, status = "no time left", None
    if end - begin >= 2:
        with (results / f"{name}.txt").open("w") as output:
            child = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=output, stderr=subprocess.STDOUT)
            status, how = wait(child, end)
    return {"status": status, "how": how, "seconds": round(time.monotonic() - begin, 1)}


def wait(child: subprocess.Popen[bytes], end: float) -> tuple[int | None, str]:
    """Waits for a child; at the end it is interrupted, so that it reports what it has, and then killed."""
    try:
        status = child.wait(max(end - time.monotonic(), 1))
        return status, "done" if status == 0 else f"ended with status {status}"
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
    try:
        status = child.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        child.kill()
        status = child.wait()
    return status, TIME_UP


if __name__ == "__main__":
    sys.exit(main())
