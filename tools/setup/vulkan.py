"""``python -m pumice.tools.setup.vulkan``: checks for a Vulkan loader, a driver and tools; installs what is missing.

It looks for a Vulkan library that loads, at least one device with Vulkan 1.2 (with a GPU's own driver Mesa is not
installed), glslang and SPIRV-Tools on ``PATH``, and with ``--validation`` the Khronos validation layer.
``--test-tools`` adds tools that only tests need: a C compiler, Vulkan's headers, CMake and Valgrind for C programs,
Xvfb for windows. Missing packages are installed with ``apt-get`` where that exists and may be run (as root, or with
``sudo`` without password); elsewhere their names are printed. Nothing else is changed.

The exit status is 0 when everything is there, and 1 when something is missing. Tools of tests that cannot be installed
are only named: the tests that need them skip.

Calling sequence: ``look()`` → ``missing()`` → ``install()`` → ``look()`` again. Looking loads drivers, which may crash,
so it happens in a child process, which also finds newly installed libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ...base.install_hints import DRIVER_VARIABLES, Component, detect_platform, install_command, install_hint, packages
from ...base.lazy_dataclass import dataclass
from ...spirv.checks.tools import SPIRV_TOOLS, find_tool
from ...spirv.sources.glsl import find_compiler
from ...status import DeadlineExceededError, PumiceError, UnavailableError

VALIDATION_LAYER: Final = "VK_LAYER_KHRONOS_validation"
LAYER_MANIFEST: Final = "VkLayer_khronos_validation.json"
_LAYER_PATHS: Final = ("VK_ADD_LAYER_PATH", "VK_LAYER_PATH")
_LOOK_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Findings:
    loader: str = ""
    loader_error: str | None = None
    driver_error: str | None = None
    devices: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    layer_manifest: bool = False


def look() -> Findings:
    """Looks for a loader, drivers and layers, in a child process."""
    command = [sys.executable, "-m", "pumice.tools.setup.vulkan", "--probe"]
    try:
        child = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LOOK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeadlineExceededError(
            f"expected a Vulkan driver to list its devices within {_LOOK_SECONDS:.0f} s; it hangs. "
            "Name one driver that works with VK_DRIVER_FILES=<its manifest>.json"
        ) from None
    drivers = tuple(str(path) for path in manifests("icd.d"))
    layer_manifest = any(path.name == LAYER_MANIFEST for path in manifests("explicit_layer.d"))
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        return Findings(driver_error=f"a driver crashed ({name})", drivers=drivers, layer_manifest=layer_manifest)
    lines = child.stdout.splitlines()
    if child.returncode != 0 or not lines:
        last = (child.stderr.splitlines() or ["no output"])[-1]
        raise UnavailableError(f"`{' '.join(command)}` failed ({last}); is pumice installed there (pip install -e .)?")
    findings = json.loads(lines[-1])
    findings |= {"devices": tuple(findings["devices"]), "layers": tuple(findings["layers"])}
    return Findings(**findings | {"drivers": drivers, "layer_manifest": layer_manifest})


def missing_tools() -> tuple[Component, ...]:
    """Returns the missing shader tools, searched for like the shader build does."""

    wanted: list[Component] = []
    try:
        find_compiler()
    except UnavailableError:
        wanted.append("glslang")
    try:
        for name in SPIRV_TOOLS:
            find_tool(name)
    except UnavailableError:
        wanted.append("spirv-tools")
    return tuple(wanted)


def missing_test_tools() -> tuple[Component, ...]:
    """Returns the missing tools that only tests need."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    wanted: list[Component] = []
    if compiler is None:
        wanted.append("c-compiler")
    if compiler is None or not _compiles(compiler, "#include <stdlib.h>\n#include <vulkan/vulkan.h>\n"):
        wanted.append("vulkan-headers")
    programs: Mapping[Component, str] = {"cmake": "cmake", "valgrind": "valgrind", "xvfb": "Xvfb"}
    wanted += [name for name, program in programs.items() if shutil.which(program) is None]
    return tuple(wanted)


def _compiles(compiler: str, text: str) -> bool:
    command = [compiler, "-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode == 0


def missing(findings: Findings, tools: Sequence[Component], *, validation: bool) -> tuple[Component, ...]:
    """Returns the components to install. Without a loader, a driver's manifest counts as a driver."""
    wanted: list[Component] = []
    if findings.loader_error is not None:
        wanted.append("loader")
    if not (findings.devices or (findings.loader_error is not None and findings.drivers)):
        wanted.append("driver")
    has_layer = VALIDATION_LAYER in findings.layers or (findings.loader_error is not None and findings.layer_manifest)
    if validation and not has_layer:
        wanted.append("validation")
    return (*wanted, *tools)


def installer() -> tuple[str, ...] | None:
    """Returns the ``apt-get`` command, without prompts; ``None`` if it is absent or not permitted."""
    if shutil.which("apt-get") is None:
        return None
    quiet = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
    if os.geteuid() == 0:
        return quiet
    if shutil.which("sudo") is None:
        return None
    may = subprocess.run(["sudo", "-n", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return ("sudo", "-n", *quiet) if may.returncode == 0 else None


def install(components: Sequence[Component], apt_get: Sequence[str]) -> None:
    """Installs the Debian packages of the components; an UnavailableError ends with the words of apt-get."""
    wanted = [package for component in components for package in packages(component, "debian")]
    print(f"setup: installing {' '.join(wanted)}", flush=True)
    # An unreachable source is not an error, as the packages may come from another source.
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *wanted]):
        done = subprocess.run(
            [*apt_get, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        words = done.stdout[-4000:].rstrip()
        raise UnavailableError(
            f"apt-get could not install {' '.join(wanted)} (exit status {done.returncode}):\n{words}"
        )


def ensure(*, validation: bool = False, may_install: bool = True) -> Findings:
    """Checks the machine and installs missing parts if permitted; UnavailableError says what to install."""
    rounds = 0
    while True:
        findings = look()
        wanted = missing(findings, missing_tools(), validation=validation)
        if not wanted:
            return findings
        if rounds == 2:  # drivers can only be tried once there is a loader
            raise UnavailableError("installing the packages was not enough. " + _report(findings, wanted))
        apt_get = installer() if may_install else None
        if apt_get is None:
            raise UnavailableError(_report(findings, wanted))
        install(wanted, apt_get)
        rounds += 1


def ensure_test_tools(*, may_install: bool = True) -> tuple[Component, ...]:
    """Installs the missing tools of tests if permitted; returns those still missing."""
    wanted = missing_test_tools()
    apt_get = installer() if wanted and may_install else None
    if apt_get is None:
        return wanted
    install(wanted, apt_get)
    return missing_test_tools()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pumice.tools.setup.vulkan",
        description="Find a Vulkan loader, a driver and tools; install what is missing where apt-get may.",
    )
    parser.add_argument("--validation", action="store_true", help="require the Khronos validation layer too")
    parser.add_argument("--test-tools", action="store_true", help="also what only tests need: C tools, Xvfb")
    parser.add_argument("--check", action="store_true", help="install nothing, only report")
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.probe:
        print(json.dumps(asdict(_probe())))
        return 0
    try:
        findings = ensure(validation=options.validation, may_install=not options.check)
        lacking = ensure_test_tools(may_install=not options.check) if options.test_tools else ()
    except PumiceError as error:
        print(f"setup: {error.message}", file=sys.stderr)
        return 1
    print("setup: Vulkan is ready on " + "; ".join(findings.devices))
    if lacking:
        print(f"setup: tests of C programs or windows will skip. {_report(Findings(), lacking)}", file=sys.stderr)
    return 0


def _report(findings: Findings, wanted: Sequence[Component]) -> str:
    """Returns a line for each missing component with the reason, and the command that installs them all, if any."""
    reasons: dict[Component, str | None] = {"loader": findings.loader_error, "driver": findings.driver_error}
    lines = [f"missing: {', '.join(wanted)}"]
    for component in wanted:
        reason = reasons.get(component)
        hint = install_hint(component)
        if reason is not None:
            lines.append(f"  {component}: {reason}")
        if reason is None or hint not in reason:
            lines.append(f"  {component}: {hint}")
    if "driver" in wanted and findings.drivers:
        lines.append(f"  driver manifests found, none of which gave a device: {', '.join(findings.drivers)}")
    for variable in DRIVER_VARIABLES:
        if "driver" in wanted and os.environ.get(variable):
            lines.append(f"  {variable}={os.environ[variable]} hides all other drivers; unset it if that is not meant")
    command = install_command(wanted)
    if command is not None:
        lines.append(f"all of it: {command}")
    elif detect_platform() == "linux":
        lines.extend(f"{name}: {install_command(wanted, name)}" for name in ("debian", "fedora", "arch"))
    return "\n".join(lines)


def manifests(kind: str) -> list[Path]:
    """Returns the manifests of drivers (``"icd.d"``) or layers (``"explicit_layer.d"``) in the loader's search path.

    Source: LoaderDriverInterface.md, "Driver Discovery", and LoaderLayerInterface.md, "Layer Discovery", of the
    Khronos Vulkan-Loader. The registry, which Windows uses instead, is not read.
    """
    environ = os.environ
    named = os.pathsep.join(environ.get(name, "") for name in DRIVER_VARIABLES).split(os.pathsep)
    chosen = [Path(path) for path in named if path]
    if chosen and kind == "icd.d":
        return [path for path in chosen if path.is_file()]
    home = Path(environ.get("HOME", "/"))
    roots = [
        environ.get("XDG_CONFIG_HOME") or str(home / ".config"),
        *(environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
        "/etc",
        environ.get("XDG_DATA_HOME") or str(home / ".local/share"),
        *(environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
        *(("/opt/homebrew/etc", "/opt/homebrew/share", "/usr/local/etc") if sys.platform == "darwin" else ()),
    ]
    folders = [Path(root) / "vulkan" / kind for root in dict.fromkeys(roots) if root]
    if kind == "explicit_layer.d":
        added, only = (
            [Path(path) for path in environ.get(name, "").split(os.pathsep) if path] for name in _LAYER_PATHS
        )
        folders = [*added, *(only or folders)]
    return [path for folder in folders for path in ([folder] if folder.is_file() else sorted(folder.glob("*.json")))]


# -- the child ---------------------------------------------------------------------------------------


def _probe() -> Findings:
    """Looks for the parts in this process, which a faulty driver may crash."""
    # Imported here: the parent reports when this import fails.
    from ...hal_vulkan.instance.driver import Driver, instance_layers, loader_version
    from ...hal_vulkan.vulkan.functions import InstanceFunctions

    try:
        functions = InstanceFunctions()
    except PumiceError as error:
        return Findings(loader_error=error.message)
    layers: tuple[str, ...] = ()
    loader = f"Vulkan {'.'.join(map(str, loader_version(functions)))}"
    try:
        layers = tuple(sorted(instance_layers(functions)))
        with Driver(validation=False) as driver:
            profiles = driver.profiles
    except PumiceError as error:
        return Findings(loader=loader, driver_error=error.message, layers=layers)
    names = tuple(f"{profile.name} (Vulkan {profile.api_version[0]}.{profile.api_version[1]})" for profile in profiles)
    usable = tuple(name for name, profile in zip(names, profiles, strict=True) if profile.api_version >= (1, 2))
    driver_error = None
    if not usable:
        driver_error = f"expected a device with Vulkan 1.2 or later, got {'; '.join(names) or 'no device at all'}"
    return Findings(loader=loader, driver_error=driver_error, devices=usable, layers=layers)


if __name__ == "__main__":
    sys.exit(main())
