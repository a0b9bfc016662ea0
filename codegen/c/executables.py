"""Vulkan executables as tables in C: shaders, pipelines, and the device features that they need."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ...formats.vke1 import DispatchAbi, ExecutableDef
from ...formats.vke1_reader import parse_executable
from ...spirv.binary.subgroups import least_subgroup_size
from ...spirv.checks.requirement_tables import CAPABILITIES, EXTENSIONS
from ...spirv.checks.requirements import Alternative, requirements
from ...spirv.checks.validation import ensure_valid
from ...spirv.reflection.reflect import reflect
from ...spirv.reflection.reflection_types import ShaderModuleReflection
from ...spirv.repair.driver_faults import ALL_FAULTS
from ...spirv.repair.driver_repairs import with_repairs
from ...spirv.repair.repair import repair
from ...status import UnimplementedError
from .expressions import string_literal

_VERSION: Final = (1, 2)
_ENVIRONMENT: Final = "vulkan1.2"
_MAX_SPIRV: Final = (1, 5)
_CORE: Final = ["shaderInt16", "shaderInt64", "shaderFloat64"]
_V11: Final = [
    "storageBuffer16BitAccess",
    "uniformAndStorageBuffer16BitAccess",
    "storagePushConstant16",
    "variablePointersStorageBuffer",
    "variablePointers",
]
_V12: Final = [
    "storageBuffer8BitAccess",
    "uniformAndStorageBuffer8BitAccess",
    "storagePushConstant8",
    "shaderBufferInt64Atomics",
    "shaderSharedInt64Atomics",
    "shaderFloat16",
    "shaderInt8",
    "vulkanMemoryModel",
    "vulkanMemoryModelDeviceScope",
    "shaderSubgroupExtendedTypes",
]
_CONTROLS: Final = [
    f"shader{kind}Float{bits}"
    for kind in (
        "SignedZeroInfNanPreserve",
        "DenormPreserve",
        "DenormFlushToZero",
        "RoundingModeRTE",
        "RoundingModeRTZ",
    )
    for bits in (16, 32, 64)
]
FEATURES: Final = {
    **{name: f"core.features.{name}" for name in _CORE},
    **{name: f"v11.{name}" for name in _V11},
    **{name: f"v12.{name}" for name in _V12},
    **{name: f"properties.{name}" for name in _CONTROLS},
}
"""Features of Vulkan 1.2, and similar properties, with their members in ``struct features``."""

_SUBGROUP_BITS: Final = {
    "basic": 0x1,
    "vote": 0x2,
    "arithmetic": 0x4,
    "ballot": 0x8,
    "shuffle": 0x10,
    "shuffle_relative": 0x20,
    "clustered": 0x40,
    "quad": 0x80,
}
_IMPLIED: Final = {"variablePointers": "variablePointersStorageBuffer"}


@dataclass
class Executables:
    """The executables of a program and their shaders, without duplicates.

    Attributes:
        sources: the executables, by the ordinals of their constants.
        shaders: the SPIR-V modules.
        features: the Vulkan features that shaders declare or the program queries.
    """

    sources: dict[int, ExecutableDef] = field(default_factory=dict)
    shaders: list[bytes] = field(default_factory=list)
    features: dict[str, None] = field(default_factory=dict)
    has_uniforms: bool = False
    most_bindings: int = 1
    most_sets: int = 1

    def add(self, ordinal: int, data: memoryview) -> int:
        """Adds the executable in a constant; returns its index.

        Raises:
            InvalidArgumentError: a shader is damaged or breaks a rule.
            UnimplementedError: the constant is no VKE1 executable, or needs more than Vulkan 1.2.
        """
        if ordinal not in self.sources:
            if bytes(data[:4]) != b"VKE1":
                raise UnimplementedError(
                    "the program has an executable that is none for Vulkan; compile it with --target vulkan"
                )
            self.sources[ordinal] = parse_executable(data)
        return list(self.sources).index(ordinal)

    def functions(self, name: str) -> set[int]:
        """Returns the number of a function name in each executable."""
        return {
            number
            for source in self.sources.values()
            for number, pipeline in enumerate(source.pipelines)
            if pipeline.entry_point == name
        }

    def feature(self, name: str) -> int:
        """Returns the index of a feature in the program's table; adds it if needed."""
        self.features.setdefault(name)
        if name in _IMPLIED:
            self.features.setdefault(_IMPLIED[name])
        return list(self.features).index(name)

    def tables(self) -> str:
        """Returns the definitions of all executables; call it before ``feature_table``."""
        texts: list[str] = []
        rows = []
        for index, source in enumerate(self.sources.values()):
            codes = [repair(code) for code in source.shader_modules]
            for code in codes:
                ensure_valid(code, _ENVIRONMENT)
            modules = [reflect(code) for code in codes]
            # The driver is not known yet, and a C program does not test it; repairs are correct on all drivers.
            codes = [with_repairs(code, module, ALL_FAULTS) for code, module in zip(codes, modules, strict=True)]
            first = len(self.shaders)
            self.shaders += codes
            pipelines = []
            features: dict[int, None] = {}
            operations, least, only = 0, 1, 0
            for module in modules:
                needed, bits = self._needs(module)
                features |= dict.fromkeys(self.feature(name) for name in needed)
                operations |= bits
            for number, pipeline in enumerate(source.pipelines):
                pipelines.append(self._pipeline(source, index, number, first, texts))
                entry = modules[pipeline.shader_module].entry_point(pipeline.entry_point)
                size = least_subgroup_size(codes[pipeline.shader_module], math.prod(entry.local_size))
                least = max(least, size, pipeline.subgroup_size)
                only = max(only, pipeline.subgroup_size)
            texts.append(
                f"static const pipeline_source pipelines_{index}[] = {{\n" + "\n".join(pipelines) + "\n};\n\n"
                f"static const uint16_t features_{index}[] = {{"
                + ", ".join([*(str(feature) for feature in features), "NO_FEATURE"])
                + "};"
            )
            facts = f"{len(pipelines)}, {operations:#x}, {least}, {only}"
            rows.append(f"    {{pipelines_{index}, features_{index}, {facts}}},")
        if rows:
            texts.append("static const executable_source executable_sources[] = {\n" + "\n".join(rows) + "\n};")
        return "\n\n".join(texts)

    def feature_table(self) -> str:
        """Returns the definition of the table of features, terminated by a row without a name."""
        rows = [f'    {{"{name}", offsetof(features, {FEATURES[name]})}},' for name in self.features]
        return "static const feature feature_table[] = {\n" + "\n".join([*rows, "    {NULL, 0},"]) + "\n};"

    def _pipeline(self, source: ExecutableDef, index: int, number: int, first: int, texts: list[str]) -> str:
        """Returns a row of the table of pipelines; adds the initializers of its bindings to ``texts``."""
        pipeline = source.pipelines[number]
        layout = source.pipeline_layouts[pipeline.pipeline_layout]
        entry = reflect(source.shader_modules[pipeline.shader_module]).entry_point(pipeline.entry_point)
        addresses = pipeline.dispatch_abi is not DispatchAbi.DESCRIPTOR or any(
            (binding.set, binding.binding) == (3, 0) for binding in entry.bindings if len(layout.set_layouts) <= 3
        )
        if addresses:
            raise UnimplementedError(
                f"the kernel {pipeline.entry_point} takes its buffers as device addresses; C programs bind "
                "descriptors: compile it with the descriptor ABI (the format vulkan-spirv-fb)"
            )
        rows = []
        for number_of_set, ordinal in enumerate(layout.set_layouts):
            for bound in sorted(source.descriptor_set_layouts[ordinal].bindings, key=lambda binding: binding.binding):
                if bound.count != 1:
                    raise UnimplementedError(
                        f"the kernel {pipeline.entry_point} has an array of {bound.count} descriptors; C programs "
                        "bind single ones"
                    )
                self.has_uniforms |= int(bound.descriptor_type) == 6
                rows.append(f"{{{number_of_set}, {bound.binding}, {int(bound.descriptor_type)}}}")
        push = max((constants.offset + constants.size for constants in layout.push_constant_ranges), default=0)
        self.most_bindings = max(self.most_bindings, len(rows))
        self.most_sets = max(self.most_sets, len(layout.set_layouts))
        name = "NULL"
        if rows:
            name = f"bindings_{index}_{number}"
            texts.append(f"static const descriptor {name}[] = {{{', '.join(rows)}}};")
        shader = first + pipeline.shader_module
        entry_point = string_literal(pipeline.entry_point)
        return f"    {{{entry_point}, {name}, {len(rows)}, {len(layout.set_layouts)}, {push}, {shader}}},"

    def _needs(self, module: ShaderModuleReflection) -> tuple[list[str], int]:
        """Returns the features and subgroup operation bits that a shader module declares."""
        if module.version > _MAX_SPIRV:
            raise UnimplementedError(
                f"the program has SPIR-V {module.version[0]}.{module.version[1]}; C programs are for Vulkan 1.2, which "
                "takes 1.5"
            )
        features, bits = [], 0
        for names, table in ((module.capabilities, CAPABILITIES), (module.extensions, EXTENSIONS)):
            for name in dict.fromkeys(names):
                alternatives = requirements(table).get(name, ())
                requirement = next((alternative for alternative in alternatives if _is_given(alternative)), None)
                if requirement is None:
                    needed = ", or ".join(map(str, alternatives)) or "more than Vulkan allows"
                    raise UnimplementedError(
                        f"the program's shaders declare {name}, which needs {needed}; C programs are for Vulkan 1.2"
                    )
                if requirement.feature.startswith("subgroup:"):
                    bits |= _SUBGROUP_BITS[requirement.feature.partition(":")[2]]
                elif requirement.feature:
                    features.append(requirement.feature)
        return features, bits


def _is_given(alternative: Alternative) -> bool:
    """Whether Vulkan 1.2 may have all capabilities of an alternative."""
    is_core = any(version <= _VERSION for version in alternative.versions)
    if not alternative.feature:
        return is_core
    if alternative.feature.startswith("subgroup:"):
        return alternative.feature.partition(":")[2] in _SUBGROUP_BITS
    return alternative.feature in FEATURES and (is_core or not (alternative.versions or alternative.extensions))


def words_text(name: str, data: bytes | memoryview, comment: str) -> str:
    """Returns an array of 32-bit words in C."""
    padded = bytes(data) + bytes(-len(data) % 4)
    words: Sequence[int] = struct.unpack(f"<{len(padded) // 4}I", padded) or (0,)
    lines = [", ".join(f"{word:#x}" for word in words[at : at + 10]) + "," for at in range(0, len(words), 10)]
    return f"/* {comment} */\nstatic const uint32_t {name}[] = {{\n    " + "\n    ".join(lines) + "\n};"
