"""What is checked of each module of a corpus of shaders, in worker processes of ``case_pool``.

A module is reflected, and its reflection compared with SPIRV-Cross's; each compute entry point is made a pipeline on
the device, and run with ``sanitize`` and zeros for everything; what is refused is put under its cause.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import traceback
from pathlib import Path
from typing import Any, Final

from conformance.shaders.zeros import run_with_zeros
from support.case_pool import Outcome

import pumice
from pumice.runtime.kernels.kernel import Kernel
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.reflection.reflection_types import Binding, EntryPoint, ShaderModuleReflection
from pumice.status import DataLossError, InvalidArgumentError, OutOfRangeError, PumiceError, UnimplementedError

LOADED: Final = "loads"
"""The result of a module that became a pipeline."""

CUT: Final = "loops cut"
WRONG_ACCESS: Final = "wrong accesses"
"""Stages of those that load, of which a run with zeros reports one or the other."""

_KINDS: Final = {
    "ssbos": "storage_buffer",
    "ubos": "uniform_buffer",
    "images": "storage_image",
    "textures": "combined_image_sampler",
    "separate_images": "sampled_image",
    "separate_samplers": "sampler",
}
_IMAGES: Final = ("images", "textures", "separate_images")
# For modules that do not run at their defaults: values that ggml's host code sets, by name.
_VALUES: Final = {"HSK": 64, "HSV": 64, "D_split": 4, "row_split": 1, "Br": 4, "Bc": 32, "TILE_K": 64}
_CAUSES: Final = (
    ("the module is invalid", r"spirv-val"),
    ("needs a value of a specialisation constant", r"speciali[sz]"),
    ("more than the device's limits", r"more than .* allows|is past|exceeds"),
    ("several entry points", r"entry points; name one"),
    ("no compute entry point", r"expected a GLCompute entry point|pumice runs compute"),
    ("pumice does not know it", r"does not know|not allowed in Vulkan"),
    ("the device lacks it", r"cannot run this shader|lacks|does not have|has not"),
)


def cause_of(error: PumiceError) -> str:
    """A short name of why a module was refused."""
    message = str(error)
    for name, pattern in _CAUSES:
        if re.search(pattern, message):
            return name
    kind = "unimplemented" if isinstance(error, UnimplementedError) else type(error).__name__
    return f"{kind}: {message[:80]}"


class ShaderCases:
    """The modules of a folder's ``index.json``: a list of (project, path)."""

    def __init__(self, folder: Path) -> None:
        self.index = json.loads((folder / "index.json").read_text())
        options = json.loads((folder / "options.json").read_text())
        self.cross = options["cross"]
        logging.getLogger("pumice").setLevel(logging.ERROR)
        self.device = pumice.open_device(options["device"])
        self.sanitized = pumice.open_device(options["device"], sanitize=True) if options["sanitize"] else None

    def run(self, seed: int, index: int) -> Outcome:
        project, path = self.index[index]
        try:
            return self._run(project, Path(path))
        except Exception:
            return Outcome(project, "bug", f"{path}\n{traceback.format_exc()}")

    def _run(self, project: str, path: Path) -> Outcome:
        code = path.read_bytes()
        try:
            reflection = reflect(code)
        except PumiceError as error:
            return Outcome(project, cause_of(error), f"reflection: {error}")
        compute = [one for one in reflection.entry_points if one.execution_model == "GLCompute"]
        if not compute:
            return Outcome(project, "no compute entry point")
        if self.cross:
            told = self._compared(path, reflection)
            if told:
                return Outcome(project, "bug", f"{path}: reflection differs from SPIRV-Cross's: {told}")
        values: dict[int | str, int | float | bool] = {}
        if reflection.unsettled:
            names = {name for constant in reflection.specialization_constants for name in constant.names}
            values = {name: value for name, value in _VALUES.items() if name in names}
        for entry in compute:
            try:
                self.device.load_kernel(code, entry_point=entry.name, specialization=values).close()
            except PumiceError as error:
                return Outcome(project, cause_of(error), str(error))
            if self.sanitized is not None:
                try:
                    kernel = self.sanitized.load_kernel(code, entry_point=entry.name, specialization=values)
                except PumiceError as error:
                    return Outcome(project, "bug", f"{path}: loads, but not with sanitize: {error}")
                with kernel:
                    reported = _reported(self.sanitized, kernel)
                if reported is not None:
                    stage = CUT if "loop" in str(reported) else WRONG_ACCESS
                    return Outcome(stage, LOADED, str(reported))
        return Outcome(project, LOADED)

    def _compared(self, path: Path, reflection: ShaderModuleReflection) -> str:
        """How an entry point's resources differ from SPIRV-Cross's; ``""`` if they do not, or it cannot tell."""
        if len(reflection.entry_points) > 1:
            return ""  # its command reflects one entry point and does not say which resources are whose
        command = [self.cross, str(path), "--reflect", "--remove-unused-variables"]
        told = subprocess.run(command, capture_output=True, timeout=30, check=False)
        if told.returncode:
            return ""
        listed = subprocess.run(
            ["spirv-dis", "--raw-id", "--no-color", str(path)], check=False, capture_output=True, text=True
        )
        return _difference(reflection.entry_points[0], json.loads(told.stdout), listed.stdout)

    def close(self) -> None:
        self.device.close()
        if self.sanitized is not None:
            self.sanitized.close()


def _reported(device: pumice.Device, kernel: Kernel) -> PumiceError | None:
    """What a run with zeros for everything is told: the shader's own mistake, as it is given nothing that is meant."""
    try:
        run_with_zeros(device, kernel)
    except (OutOfRangeError, DataLossError, InvalidArgumentError) as error:
        return error
    return None


def _difference(entry: EntryPoint, told: dict[str, Any], assembly: str) -> str:
    theirs: dict[tuple[int, int], set[str]] = {}
    for key, kind in _KINDS.items():
        for one in told.get(key, ()):
            theirs.setdefault((one.get("set", 0), one["binding"]), set()).add(kind)
    for binding in entry.bindings:
        images = [one for key in _IMAGES for one in told.get(key, ()) if _place(one) == (binding.set, binding.binding)]
        wide = binding.image is not None and binding.image.sampled.bits == 64  # it has no name for those
        if len(images) == 1 and not binding.image_aliases and not wide:
            one = images[0]
            mine, other = _image_text(binding), (one["type"], one.get("format", "").replace("_", ""))
            if mine != other or (binding.readable and "writeonly" in one) or (binding.writable and "readonly" in one):
                return f"set {binding.set} binding {binding.binding}: {mine}, SPIRV-Cross has {one}"
    ours = {(one.set, one.binding): one.descriptor_type_name for one in entry.bindings}
    for place in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(place, "nothing"), theirs.get(place, {"nothing"})
        texel = mine.endswith("texel_buffer") and other & {"storage_image", "sampled_image", "combined_image_sampler"}
        if mine == "nothing" and not _is_used(place, assembly):
            continue  # SPIRV-Cross takes all of an interface list for used, and counters of structured buffers
        if mine not in other and not texel and mine not in ("acceleration_structure", "tensor"):
            return f"set {place[0]} binding {place[1]}: {mine}, SPIRV-Cross has {sorted(other)}"
    return ""


def _place(told: dict[str, Any]) -> tuple[int, int]:
    return told.get("set", 0), told["binding"]


def _image_text(binding: Binding) -> tuple[str, str]:
    """An image's type as GLSL has it, and its format."""
    image = binding.image
    if image is None:
        return "", ""
    base = "image" if image.storage else "texture" if binding.descriptor_type_name == "sampled_image" else "sampler"
    dim = {"rect": "2DRect", "cube": "Cube", "buffer": "Buffer"}.get(image.dim, image.dim.upper())
    prefix = {"float": "f16" if image.sampled.bits == 16 else "", "int": "i", "uint": "u"}[image.sampled.kind]
    ends = "MS" * image.multisampled + "Array" * image.arrayed + "Shadow" * (image.depth and base == "sampler")
    written = image.format if image.storage and image.format != "unknown" else ""
    return f"{prefix}{base}{dim}{ends}", written


def _is_used(place: tuple[int, int], assembly: str) -> bool:
    """Whether a function names a variable of a (set, binding)."""
    declarations, _, functions = assembly.partition(" OpFunction ")
    numbered = [
        set(re.findall(rf"OpDecorate (%\d+) {word} {number}\n", declarations))
        for word, number in zip(("DescriptorSet", "Binding"), place, strict=True)
    ]
    return any(re.search(rf"{name}\b", functions) for name in numbered[0] & numbered[1])


def open_shaders(folder: Path) -> ShaderCases:
    """For ``case_pool``."""
    return ShaderCases(folder)
