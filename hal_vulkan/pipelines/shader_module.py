"""Shader modules: SPIR-V that a driver has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...spirv.reflection.reflection_types import ShaderModuleReflection
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, new
from .prepared_shader import PreparedShader
from .specialization import PackedConstants, SpecializationValue, pack_constants

if TYPE_CHECKING:
    from ...spirv.instrument.reports import Instrumented


class ShaderModule:
    """A VkShaderModule with what it was prepared from.

    Attributes:
        prepared: what is known of it.
        reflection, code: of the module as it was given.
        instrumented: where the module that the driver has reports, or ``None``.
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
        """Reflection of the module with these constants set, which change sizes, lengths and shared memory."""
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
