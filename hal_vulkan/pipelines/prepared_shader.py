"""SPIR-V in its final form for a driver, and the known facts about it.

A module is reflected and checked, rewritten without constructs that the driver does not know, crashes on or gets wrong,
and instrumented. The result is kept on disk, under a key of all its inputs. The next process that loads the module
neither checks nor reads it, nor imports the code for that.
"""

from __future__ import annotations

import math
import os
import pickle
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...base.cache import CachedFile, digest, folder_stamp
from ...base.closeable import Closeable
from ...spirv.instrument.reports import Instrumented
from ...spirv.reflection.reflection_types import ShaderModuleReflection
from ...spirv.repair.driver_faults import DriverFault
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, new
from .pipeline_interface import NO_SIZES, check_capabilities, check_matrices
from .self_test import driver_faults
from .specialization import PackedConstants, SpecializationValue, pack_constants

if TYPE_CHECKING:
    from ...spirv.instrument.checks import SanitizeOptions

# The facts besides the module and the device that a verdict depends on.
_VALIDATOR: Final = ("PUMICE_SPIRV_TOOLS", "PUMICE_REQUIRE_SPIRV_VAL")


class PreparedShader(NamedTuple):
    """A module that is ready for a driver.

    Attributes:
        code: the original module; for a program, the repaired module.
        native: the driver's module.
        reflection: the reflection of ``code``.
        instrumented: the reports of ``native``, or ``None``.
        subgroup_sizes: for a program, the least subgroup size by entry point; see `least_subgroup_size`.
        misread: for a program, the types that kernels misread, by kernel; see `misread_type`.
        checked: whether `check_capabilities` found that the device can run it.
    """

    code: bytes
    native: bytes
    reflection: ShaderModuleReflection
    instrumented: Instrumented | None
    subgroup_sizes: Mapping[str, int]
    misread: Mapping[str, str]
    checked: bool


class ShaderModule(Closeable):
    """A VkShaderModule and its prepared module.

    Attributes:
        prepared: the module's facts.
        reflection, code: the reflection and the words of the original module.
        instrumented: the reports of the driver's module, or ``None``.
    """

    def __init__(self, device: LogicalDevice, prepared: PreparedShader) -> None:
        self._device = device
        self.prepared = prepared
        self.code: bytes = prepared.code
        self.reflection: ShaderModuleReflection = prepared.reflection
        self.instrumented: Instrumented | None = prepared.instrumented
        code = prepared.native
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(words, code, len(code))
        info = new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
        self.handle: CData = device.create("shader module", info)

    def pack(self, values: Mapping[int, SpecializationValue] | None) -> PackedConstants:
        return pack_constants(self.reflection.specialization_constants, values)

    def specialised(self, constants: PackedConstants) -> ShaderModuleReflection:
        """Returns the reflection of the module with these constants set, which change sizes, lengths
        and shared memory.
        """
        if not constants:
            return self.reflection
        from ...spirv.reflection.reflect import reflect
        from ...spirv.repair.specialize import specialize

        return reflect(specialize(self.code, dict(constants)))

    def close(self) -> None:
        """Destroys the module; its pipelines stay. Idempotent."""
        if self.handle != ffi.NULL:
            self._device.destroy("shader module", self.handle)
            self.handle = ffi.NULL


def prepare_shader(
    device: LogicalDevice,
    code: bytes | memoryview,
    *,
    validate: bool = True,
    watch: bool = True,
    sanitize: bool = False,
    array_sizes: Mapping[tuple[int, int], int] = NO_SIZES,
    reserved: Sequence[tuple[int, int]] = (),
    kernels: Sequence[str] | None = None,
) -> PreparedShader:
    """Prepares a module for a device, or finds it in the cache.

    Args:
        validate: whether to check it with ``spirv-val``.
        watch: whether to instrument it, if the device's options ask for it.
        sanitize: whether to report wrong accesses; if so, the code has the values of its specialization constants.
        array_sizes: the descriptor counts of run-time sized arrays by (set, binding).
        reserved: the (set, binding) pairs that the layouts of its pipelines have.
        kernels: the names of a compiled program's pipelines; ``None`` for other modules.

    Raises:
        InvalidArgumentError: the module is damaged or breaks a rule.
        UnimplementedError: the module needs a feature that the device lacks.
    """
    guard = watch and device.plan.loop_guard
    prints = watch and device.plan.prints
    faults = driver_faults(device)
    file = None
    # Unchecked modules were made here from checked modules.
    if validate and not sanitize:
        repairs = sorted(fault.value for fault in faults)
        options = (guard, prints, repairs, tuple(reserved), None if kernels is None else tuple(kernels))
        validator = tuple(map(os.environ.get, _VALIDATOR))
        file = CachedFile("shaders", (digest(code), options, _device_key(device), validator, _version()))
        kept = file.load()
        if kept is not None:
            prepared: PreparedShader = pickle.loads(kept)
            return prepared
    prepared, is_judged = _prepare(
        device, code, validate, guard, prints, faults, sanitize, array_sizes, reserved, kernels
    )
    if file is not None and is_judged:
        file.store(pickle.dumps(prepared, pickle.HIGHEST_PROTOCOL))
    return prepared


def _prepare(
    device: LogicalDevice,
    source: bytes | memoryview,
    validate: bool,
    guard: bool,
    prints: bool,
    faults: frozenset[DriverFault],
    sanitize: bool,
    array_sizes: Mapping[tuple[int, int], int],
    reserved: Sequence[tuple[int, int]],
    kernels: Sequence[str] | None,
) -> tuple[PreparedShader, bool]:
    # Imported here: cached modules need none of these.
    from ...spirv.binary.subgroups import least_subgroup_size
    from ...spirv.checks.capabilities import lacking_hints
    from ...spirv.checks.validation import Judgement, ensure_valid
    from ...spirv.checks.vocabulary import without_new_languages
    from ...spirv.instrument.passes import instrument
    from ...spirv.reflection.reflect import reflect
    from ...spirv.repair.copies import with_plain_copies
    from ...spirv.repair.driver_repairs import with_repairs
    from ...spirv.repair.exponents import with_plain_exponents
    from ...spirv.repair.formats import with_formats
    from ...spirv.repair.hints import without_debug_info, without_hints
    from ...spirv.repair.repair import misread_type, repair
    from ...spirv.repair.zeros import with_zero_loops

    code = bytes(source if kernels is None else repair(source))
    if "shaderStorageImageReadWithoutFormat" not in device.plan.features:
        code = with_formats(code)
    reflection = reflect(code)
    judgement = Judgement.VALID
    if validate:
        check_capabilities(device, reflection)  # first: validators may not know them
        if "CooperativeMatrixKHR" in reflection.capabilities:
            check_matrices(device.profile, code)
        judgement = ensure_valid(code, f"vulkan1.{device.profile.version[1]}", device.plan.features)
    native = with_zero_loops(with_plain_exponents(without_new_languages(code), reflection), reflection)
    native = with_repairs(with_plain_copies(native), reflection, faults)
    instrumented = None
    if guard or sanitize or prints:
        options = _sanitize_options(device, array_sizes) if sanitize else None
        instrumented = instrument(native, guard=guard, sanitize=options, prints=prints, reserved=reserved)
    misread: dict[str, str] = {}
    sizes: dict[str, int] = {}
    if kernels is not None:
        misread = {name: kind for name in kernels if (kind := misread_type(name, bytes(source))) is not None}
        sizes = {
            entry.name: least_subgroup_size(code, math.prod(entry.local_size))
            for entry in reflection.entry_points
            if entry.execution_model == "GLCompute"
        }
    if instrumented is not None:
        native = instrumented.code
    lacking = lacking_hints(reflection, device.profile.version, frozenset(device.plan.extensions))
    native = without_hints(native, frozenset(lacking))  # lines, and prints, were taken from them
    if instrumented is not None or judgement is Judgement.WITHOUT_DEBUG_INFO:
        native = without_debug_info(native)  # reports have their lines from it; of changed code it says nothing
    return PreparedShader(code, native, reflection, instrumented, sizes, misread, validate), bool(judgement)


def _sanitize_options(device: LogicalDevice, array_sizes: Mapping[tuple[int, int], int]) -> SanitizeOptions:
    from ...spirv.instrument.checks import NARROW_CAPABILITIES, SanitizeOptions

    features = device.plan.features
    return SanitizeOptions(
        workgroup_bytes=device.profile.limits.max_compute_shared_memory_size,
        zero_workgroup="shaderZeroInitializeWorkgroupMemory" in features,
        capabilities=frozenset(
            capability for feature, capability in NARROW_CAPABILITIES.items() if feature in features
        ),
        descriptors=dict(array_sizes),
    )


# -- keys ----------------------------------------------------------------------------------------------

_keys: weakref.WeakKeyDictionary[LogicalDevice, bytes] = weakref.WeakKeyDictionary()


def _device_key(device: LogicalDevice) -> bytes:
    """Returns the properties of a device that modules prepared for it depend on."""
    key = _keys.get(device)
    if key is None:
        profile, plan = device.profile, device.plan
        sets = plan.features, profile.properties, profile.features, profile.extensions, plan.extensions
        facts = (profile.version, *map(sorted, sets), sorted(profile.subgroup.supported_operations))
        key = _keys[device] = digest(repr(facts).encode())
    return key


@cache
def _version() -> bytes:
    """Returns a digest of the code that reads, checks and writes SPIR-V."""
    return folder_stamp(Path(__file__).parents[2] / "spirv", Path(__file__).parent)
