"""``pumice ci doctor``: examines each part of a machine's Vulkan, with remedies.

Every part that loads drivers runs in a separate process: a crash or hang of a driver is a finding.
"""

from __future__ import annotations

import enum
import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ...base.install_hints import DRIVER_VARIABLES, driver_hint, install_hint
from ...base.lazy_dataclass import dataclass
from ...hal_vulkan import DeviceProfile
from ...hal_vulkan.vulkan.vendored import vendored_manifest
from ...status import PumiceError
from ...testing.requirements import DriverRange, driver_text
from ..setup.vulkan import LAYER_MANIFEST, VALIDATION_LAYER, look, manifests, missing_tools

_SECONDS: Final = 60.0
_WIDTH: Final = 100
_HIDING: Final = (
    *("VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE", "VK_LOADER_LAYERS_DISABLE"),
    *("VK_LAYER_PATH", "VK_INSTANCE_LAYERS", "PUMICE_VULKAN_LIBRARY"),
)
# The answers of the loader and of drivers whose GPU is absent.
_NO_DEVICE: Final = ("VK_ERROR_INITIALIZATION_FAILED", "it finds no Vulkan driver", "it lists no device")
_REINSTALL: Final = "reinstall its package, or delete the manifest"
_KERNEL: Final = Path(__file__).parents[2] / "shaders" / "mul.spv"


# Versions reported to be broken for compute; other versions may be broken as well.
class KnownFault(NamedTuple):
    """A range of versions (`DriverRange`), the defect, a remedy, and the report."""

    drivers: str
    fault: str
    remedy: str
    source: str


DRIVERS: Final = (
    KnownFault(
        "llvmpipe>=26.0,<26.1",
        "compiling compute shaders ends the process, in LLVM",
        "install Mesa 25.3, or 26.1 and later",
        "github.com/cataclysmbn/Cataclysm-BN/issues/9470, github.com/mmozeiko/build-mesa/issues/20, "
        "github.com/gfx-rs/wgpu/pull/9903",
    ),
    KnownFault(
        "NVIDIA<527",
        "push descriptors go wrong, so that pumice uses none there",
        "nothing has to be done; a newer driver is somewhat faster",
        "hal_vulkan/instance/plan.py",
    ),
)

LAYERS: Final[Mapping[tuple[int, ...], KnownFault]] = {
    (1, 3, 239): KnownFault(
        "VK_LAYER_KHRONOS_validation 1.3.239",
        "opening or closing devices in one thread while others use theirs crashes now and then",
        "let the threads of a test share a device, or install newer layers",
        "github.com/KhronosGroup/Vulkan-ValidationLayers/issues/4391",
    )
}


class State(enum.Enum):
    GOOD = "ok"
    NOTED = "note"
    BROKEN = "mend"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking one part, and the remedy."""

    part: str
    state: State
    found: str
    remedy: str = ""

    def text(self) -> str:
        """Returns the finding on a line, with the remedy below."""
        head = f"{self.state.value:<5}{self.part}: "
        wrap = functools.partial(textwrap.wrap, width=_WIDTH, break_long_words=False, break_on_hyphens=False)
        lines = wrap(self.found, initial_indent=head, subsequent_indent=" " * 5) or [head]
        if self.remedy:
            lines += wrap(self.remedy, initial_indent="     → ", subsequent_indent=" " * 7)
        return "\n".join(lines)

    def to_json(self) -> dict[str, str]:
        return {"part": self.part, "state": self.state.name.lower(), "found": self.found, "remedy": self.remedy}


def examine(device: str | None, *, validation: bool) -> Iterator[Finding]:
    """Examines each part of the machine, and yields a finding as soon as it is known."""
    try:
        seen = look()
    except PumiceError as error:
        yield Finding("drivers", State.BROKEN, error.message)
        return
    if seen.loader_error is not None:
        yield Finding("loader", State.BROKEN, "no Vulkan library loads", seen.loader_error)
        return
    yield Finding("loader", State.GOOD, seen.loader)
    yield from _environment(os.environ)
    profiles: list[DeviceProfile] = []
    for manifest in filter(None, (*manifests("icd.d"), vendored_manifest())):
        finding, of_driver = _driver(manifest)
        yield finding
        profiles += of_driver
    if not (seen.drivers or profiles):
        yield Finding("drivers", State.BROKEN, "no driver is found", driver_hint())
    elif not any(not profile.problems() for profile in profiles):
        yield Finding("drivers", State.BROKEN, "none of them gives a device for compute", install_hint("driver"))
    yield from _layers(seen.layers, required=validation)
    for tool in missing_tools():
        yield Finding("tools", State.NOTED, f"{tool} is not installed", install_hint(tool))
    yield from _render_nodes(Path("/dev/dri"))
    if any(not profile.problems() for profile in profiles):
        yield from _run(device)


def _environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    for name in DRIVER_VARIABLES:
        for path in filter(None, environ.get(name, "").split(os.pathsep)):
            if not Path(path).exists():
                yield Finding("environment", State.BROKEN, f"{name} names {path}, which is not there", f"unset {name}")
            else:
                yield Finding("environment", State.NOTED, f"{name}={path} hides all other drivers")
    for name in _HIDING:
        if environ.get(name):
            yield Finding("environment", State.NOTED, f"{name}={environ[name]} changes which drivers and layers load")


def _driver(manifest: Path) -> tuple[Finding, list[DeviceProfile]]:
    """Checks a single driver; returns its devices, or the reason why it has none."""
    part = f"driver {manifest.name}"
    try:
        library = json.loads(manifest.read_text(encoding="utf-8"))["ICD"]["library_path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding(part, State.BROKEN, f"{manifest} is damaged: {error!r}", _REINSTALL), []
    if os.sep in library and not (manifest.parent / library).exists():
        remedy = _REINSTALL
        return Finding(part, State.BROKEN, f"its library {library} is not there", remedy), []
    environ = {name: str(manifest) for name in DRIVER_VARIABLES}
    status, output, error_text = _pumice(["devices", "--json"], environ)
    if status == 0:
        profiles = [DeviceProfile.from_json(entry["profile"]) for entry in json.loads(output)]
        return _of_devices(part, profiles), profiles
    if status is None or status < 0:
        how = "it hangs" if status is None else f"it crashes ({signal.Signals(-status).name})"
        remedy = f"update or remove its package; until then hide it with VK_LOADER_DRIVERS_DISABLE='{manifest.name}'"
        return Finding(part, State.BROKEN, how, remedy), []
    if any(words in error_text for words in _NO_DEVICE):
        return Finding(part, State.NOTED, "it finds no device of its kind on this machine"), []
    return Finding(part, State.NOTED, error_text.removeprefix("error: ")), []


def _of_devices(part: str, profiles: list[DeviceProfile]) -> Finding:
    """Returns the finding for a driver that has devices: rejected, reported to be broken, or good."""
    names = "; ".join(
        f"{profile.name}, {driver_text(profile)}, Vulkan {'.'.join(map(str, profile.api_version))}"
        for profile in profiles
    )
    refused = [f"{profile.name}: {'; '.join(profile.problems())}" for profile in profiles if profile.problems()]
    if refused:
        return Finding(part, State.NOTED, f"pumice cannot run on {'; '.join(refused)}", "a newer driver may do")
    for fault in DRIVERS:
        if any(profile in DriverRange.parse(fault.drivers) for profile in profiles):
            return Finding(part, State.NOTED, f"{names}: {fault.fault} ({fault.source})", fault.remedy)
    return Finding(part, State.GOOD, names)


def _layers(layers: tuple[str, ...], *, required: bool) -> Iterator[Finding]:
    if VALIDATION_LAYER not in layers:
        state = State.BROKEN if required else State.NOTED
        yield Finding("layers", state, f"{VALIDATION_LAYER} is not there", install_hint("validation"))
        return
    version = _layer_version()
    fault = LAYERS.get(version)
    name = f"{VALIDATION_LAYER} {'.'.join(map(str, version))}".strip()
    if fault is None:
        yield Finding("layers", State.GOOD, name)
    else:
        yield Finding("layers", State.NOTED, f"{name}: {fault.fault} ({fault.source})", fault.remedy)


def _layer_version() -> tuple[int, ...]:
    """Returns the layer's version from its manifest; empty if that is unreadable."""
    for manifest in manifests("explicit_layer.d"):
        if manifest.name == LAYER_MANIFEST:
            try:
                text = json.loads(manifest.read_text(encoding="utf-8"))["layer"]["api_version"]
                return tuple(map(int, text.split(".")))
            except (OSError, ValueError, KeyError, TypeError):
                return ()
    return ()


def _render_nodes(folder: Path) -> Iterator[Finding]:
    """Yields a finding for GPUs that this user may not open."""
    for node in sorted(folder.glob("renderD*")) if folder.is_dir() else ():
        if not os.access(node, os.R_OK | os.W_OK):
            remedy = (
                f"add the user to the group that owns {node} (usually render or video), or share it with the container"
            )
            yield Finding("permissions", State.NOTED, f"{node} cannot be opened: its GPU is not seen", remedy)


def _run(device: str | None) -> Iterator[Finding]:
    """Yields the selected device, and whether a kernel runs on it."""
    options = [] if device is None else ["--device", device]
    values = [f"{key}=4xf32={text}" for key, text in enumerate(("1,2,3,4", "2,3,4,5"))]
    bindings = [word for value in (*values, "2=4xf32") for word in ("--binding", value)]
    command = ["run", str(_KERNEL), *bindings, "--expect", "2=4xf32=2,6,12,20", *options]
    status, _, error_text = _pumice(command, {})
    if status == 0:
        yield Finding("kernel", State.GOOD, error_text.splitlines()[-1] if error_text else "ran")
    elif status is None or status < 0:
        how = "hangs" if status is None else f"ends the process ({signal.Signals(-status).name})"
        yield Finding("kernel", State.BROKEN, f"a first kernel {how}", "install another version of the driver")
    else:
        yield Finding("kernel", State.BROKEN, error_text.removeprefix("error: "))


def _pumice(arguments: list[str], environ: Mapping[str, str]) -> tuple[int | None, str, str]:
    """Runs pumice in a child; returns its status (``None`` after a timeout), stdout and stderr."""
    command = [sys.executable, "-c", "from pumice.tools.cli import main; main()", *arguments]
    try:
        child = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, **environ},
        )
    except subprocess.TimeoutExpired:
        return None, "", ""
    return child.returncode, child.stdout, child.stderr.strip()
