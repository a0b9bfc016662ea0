"""Requirements of a SPIR-V module's capabilities, extensions and version on a Vulkan device.

Sources: see `requirement_tables`; for versions the same appendix, section "Versions and Formats".
"""

from __future__ import annotations

from typing import Final

from ..binary.grammar import ENUMERATIONS
from ..binary.grammar_tables import VERSION
from ..reflection.reflection_types import ShaderModuleReflection
from ..repair.hints import HINT_CAPABILITIES, HINT_EXTENSIONS
from .requirement_tables import CAPABILITIES, EXTENSIONS, VULKAN_VERSION
from .requirements import Alternative, requirements

# SPIR-V version -> core version that allows it, and an extension that allows it in earlier versions.
_VERSIONS: Final[dict[tuple[int, int], tuple[tuple[int, int], str]]] = {
    (1, 0): ((1, 0), ""),
    (1, 1): ((1, 1), ""),
    (1, 2): ((1, 1), ""),
    (1, 3): ((1, 1), ""),
    (1, 4): ((1, 2), "VK_KHR_spirv_1_4"),
    (1, 5): ((1, 2), ""),
    (1, 6): ((1, 3), ""),
}


def missing_requirements(
    module: ShaderModuleReflection,
    *,
    api_version: tuple[int, int],
    features: frozenset[str],
    extensions: frozenset[str],
    subgroup_operations: frozenset[str],
    offered: frozenset[str] = frozenset(),
) -> list[str]:
    """Returns why a device cannot run a module, one sentence per reason; an empty list if it can.

    A sentence distinguishes three reasons: the device lacks a requirement, pumice does not enable it although the
    device has it, or pumice's tables do not list it.

    Args:
        module: the module's reflection.
        api_version: the Vulkan version in use, ``(major, minor)``: the lower of the instance's and the device's.
        features: the enabled features by their names in the Vulkan structures, and the boolean properties of
            ``VkPhysicalDeviceFloatControlsProperties`` that are true (``"shaderDenormPreserveFloat32"``).
        extensions: the enabled device extensions.
        subgroup_operations: the supported subgroup operations: basic, vote, arithmetic, ballot, shuffle,
            shuffle_relative, clustered, quad, partitioned, rotate, rotate_clustered.
        offered: the features and extensions that the device has, enabled or not.
    """
    device = (api_version, features, extensions, subgroup_operations)
    missing = _missing_version(module.version, api_version, extensions)
    said: set[str] = set()
    for subject, names, table, hints in (
        ("capability", module.capabilities, CAPABILITIES, HINT_CAPABILITIES),
        ("extension", module.extensions, EXTENSIONS, HINT_EXTENSIONS),
    ):
        for name in dict.fromkeys(names):
            alternatives = requirements(table).get(name, ())
            if name in hints or any(alternative.satisfied(*device) for alternative in alternatives):
                continue
            origins = {extension for alternative in alternatives for extension in alternative.extensions}
            if not alternatives:
                missing.append(_unknown(subject, name))
            elif not origins or not origins <= said:  # the capability's sentence covers its extension
                missing.append(f"SPIR-V {subject} {name} needs {_lacked(alternatives, offered)}")
            said |= origins
    return missing


def lacking_hints(module: ShaderModuleReflection, api_version: tuple[int, int], extensions: frozenset[str]) -> set[str]:
    """Returns a module's extensions that the device lacks and that do not affect execution."""
    nothing = frozenset[str]()
    table = requirements(EXTENSIONS)
    return {
        name
        for name in HINT_EXTENSIONS.intersection(module.extensions)
        if not any(
            alternative.satisfied(api_version, nothing, extensions, nothing) for alternative in table.get(name, ())
        )
    }


def _lacked(alternatives: tuple[Alternative, ...], offered: frozenset[str]) -> str:
    needed = ", or ".join(str(alternative) for alternative in alternatives)
    for alternative in alternatives:
        for name in (alternative.feature,) if alternative.feature else alternative.extensions:
            if name in offered:
                return f"{needed}: the device has {name}, but pumice does not use it, as compute has no need of it"
    return f"{needed}: the device or its driver lacks it"


def _unknown(subject: str, name: str) -> str:
    if subject == "capability" and name not in ENUMERATIONS["Capability"].names.values():
        release = ".".join(map(str, VERSION))
        return (
            f"pumice does not know SPIR-V {subject} {name}: its tables are of SPIR-V {release} and Vulkan "
            f"{VULKAN_VERSION}; a newer pumice may, or build the shader without it"
        )
    return (
        f"SPIR-V {subject} {name} is not allowed in Vulkan, as far as pumice knows (Vulkan {VULKAN_VERSION}): build "
        "the shader without it, or use a newer pumice if Vulkan has since allowed it"
    )


def _missing_version(version: tuple[int, int], api_version: tuple[int, int], extensions: frozenset[str]) -> list[str]:
    name = ".".join(map(str, version))
    if version not in _VERSIONS:
        return [f"SPIR-V {name} is not allowed by any Vulkan version that pumice knows; target SPIR-V 1.6 or older"]
    core, extension = _VERSIONS[version]
    if api_version >= core or extension in extensions:
        return []
    alternative = Alternative("", (core,), (extension,) if extension else ())
    return [f"SPIR-V {name} needs {alternative}, the device has Vulkan {'.'.join(map(str, api_version))}"]
