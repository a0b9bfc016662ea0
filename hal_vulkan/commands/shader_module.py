"""Shader modules: SPIR-V as a driver gets it.

A module is reflected and checked, freed of what the driver does not know or dies on, and instrumented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...spirv.capabilities import lacking_hints
from ...spirv.exponents import with_plain_exponents
from ...spirv.hints import without_hints
from ...spirv.instrument import NARROW_CAPABILITIES, Instrumented, SanitizeOptions, instrument
from ...spirv.reflect import reflect
from ...spirv.reflection_types import ShaderModuleReflection
from ...spirv.specialize import specialize
from ...spirv.validation import ensure_valid
from ...spirv.vocabulary import without_new_languages
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, new
from .pipeline_interface import NO_SIZES, check_capabilities
from .specialization import PackedConstants, SpecializationValue, pack_constants


class ShaderModule:
    """A VkShaderModule with its reflection and its SPIR-V.

    Args:
        validate: check it with ``spirv-val``.
        watch: instrument it, where the device asks for it.
        sanitize: report accesses that go wrong; the code then has the values of its specialization constants.
        array_sizes: descriptors of run-time sized arrays by (set, binding).
        reserved: (set, binding) that the layouts of its pipelines have.

    Attributes:
        reflection, code: of the module as it was given.
        instrumented: the module that the driver gets in its place, or ``None``.
    """

    def __init__(
        self,
        device: LogicalDevice,
        code: bytes | memoryview,
        *,
        validate: bool = True,
        watch: bool = True,
        sanitize: bool = False,
        array_sizes: Mapping[tuple[int, int], int] = NO_SIZES,
        reserved: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.reflection: ShaderModuleReflection = reflect(code)
        if validate:
            check_capabilities(device, self.reflection)  # first: what the device lacks may be new to validators too
            ensure_valid(bytes(code), f"vulkan1.{min(device.profile.api_version[1], 4)}", device.plan.features)
        self._device = device
        self.code = bytes(code)
        code = without_hints(
            without_new_languages(self.code),
            frozenset(
                lacking_hints(self.reflection, device.profile.api_version[:2], frozenset(device.plan.extensions))
            ),
        )
        code = with_plain_exponents(code, self.reflection)
        self.instrumented: Instrumented | None = None
        if (watch and device.plan.loop_guard) or sanitize:
            options = _sanitize_options(device, array_sizes) if sanitize else None
            self.instrumented = instrument(
                code, guard=watch and device.plan.loop_guard, sanitize=options, reserved=reserved
            )
        if self.instrumented is not None:
            code = self.instrumented.code
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(words, code, len(code))
        info = new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
        self.handle: CData = device.create("shader module", info)

    def pack(self, values: Mapping[int, SpecializationValue] | None) -> PackedConstants:
        """Values of its specialization constants; see ``pack_constants``."""
        return pack_constants(self.reflection.specialization_constants, values)

    def specialised(self, constants: PackedConstants) -> ShaderModuleReflection:
        """Reflection of the module with these constants set, which change sizes, lengths and shared memory."""
        return reflect(specialize(self.code, dict(constants))) if constants else self.reflection

    def close(self) -> None:
        """Destroys the module; its pipelines stay. Idempotent."""
        if self.handle != ffi.NULL:
            self._device.destroy("shader module", self.handle)
            self.handle = ffi.NULL


def _sanitize_options(device: LogicalDevice, array_sizes: Mapping[tuple[int, int], int]) -> SanitizeOptions:
    """What the pass is told of a device."""
    features = device.plan.features
    return SanitizeOptions(
        workgroup_bytes=device.profile.limits.max_compute_shared_memory_size,
        zero_workgroup="shaderZeroInitializeWorkgroupMemory" in features,
        capabilities=frozenset(
            capability for feature, capability in NARROW_CAPABILITIES.items() if feature in features
        ),
        descriptors=dict(array_sizes),
    )
