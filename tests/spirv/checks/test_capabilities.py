"""The requirement tables against the SPIR-V grammar and the Vulkan registry; and the sentences they lead to."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pumice.spirv.binary.grammar import ENUMERATIONS
from pumice.spirv.checks.capabilities import lacking_hints, missing_requirements
from pumice.spirv.checks.requirement_tables import CAPABILITIES, EXTENSIONS
from pumice.spirv.checks.requirements import requirements
from pumice.spirv.reflection.reflection_types import ShaderModuleReflection

REGISTRY = Path("/usr/share/vulkan/registry/vk.xml")
NONE: frozenset[str] = frozenset()


def _module(
    *capabilities: str, extensions: tuple[str, ...] = (), version: tuple[int, int] = (1, 0)
) -> ShaderModuleReflection:
    return ShaderModuleReflection(version, 0, capabilities, extensions, "Logical", "GLSL450", (), ())


def _missing(
    module: ShaderModuleReflection,
    api_version: tuple[int, int] = (1, 0),
    features: frozenset[str] = NONE,
    extensions: frozenset[str] = NONE,
    subgroup_operations: frozenset[str] = NONE,
) -> list[str]:
    return missing_requirements(
        module,
        api_version=api_version,
        features=features,
        extensions=extensions,
        subgroup_operations=subgroup_operations,
    )


def test_capabilities_are_spirv_names() -> None:
    assert requirements(CAPABILITIES).keys() <= set(ENUMERATIONS["Capability"].names.values())


def _registry() -> ET.Element:
    if not REGISTRY.exists():
        pytest.skip(f"needs the Vulkan registry at {REGISTRY} (package libvulkan-dev)")
    return ET.parse(REGISTRY).getroot()


def _words(element: ET.Element) -> set[str]:
    """What the registry names as enabling a capability or extension, in the table's terms."""
    version = element.get("version")
    if version:
        return {".".join(version.split("_")[-2:])}
    if element.get("extension"):
        return {str(element.get("extension"))}
    if element.get("feature"):
        return {str(element.get("feature"))}
    subgroup = re.fullmatch(r"VK_SUBGROUP_FEATURE_(\w+?)_BIT(_NV)?", element.get("value", ""))
    return {f"subgroup:{subgroup[1].lower()}"} if subgroup else {str(element.get("member"))}


@pytest.mark.slow
def test_capabilities_equal_registry() -> None:
    """Whatever the installed registry lists, the table has; the table may be newer and list more."""
    exact = requirements(CAPABILITIES)
    table = {re.sub(r"(KHR|EXT|NV)$", "", name): alternatives for name, alternatives in exact.items()}
    compared = 0
    for element in _registry().findall("./spirvcapabilities/spirvcapability"):
        name = re.sub(r"(KHR|EXT|NV)$", "", str(element.get("name")))
        if name in ("ShadingRate", "ClusterCullingShadingHUAWEI"):
            continue  # an alias, and a name that SPIR-V's own registry lacks
        alternatives = exact.get(str(element.get("name"))) or table[name]
        have = {alternative.feature for alternative in alternatives}
        for alternative in alternatives:
            if not alternative.feature:
                have |= {*alternative.extensions, *(f"{a}.{b}" for a, b in alternative.versions)}
        # A later registry may name a feature where an earlier one had only its extension.
        origins = {extension for alternative in alternatives for extension in alternative.extensions}
        for word in set().union(*map(_words, element)):
            assert word in have or word in origins, (name, word)
        compared += 1
    assert compared > 100


def test_extensions_equal_registry() -> None:
    compared = 0
    for element in _registry().findall("./spirvextensions/spirvextension"):
        # Corrected by later registries: the one is not core in 1.3, the other is called …_functions2.
        if element.get("name") in ("SPV_KHR_subgroup_uniform_control_flow", "SPV_INTEL_shader_integer_functions"):
            continue
        alternatives = requirements(EXTENSIONS)[str(element.get("name"))]
        have = {str(extension) for alternative in alternatives for extension in alternative.extensions}
        have |= {f"{a}.{b}" for alternative in alternatives for a, b in alternative.versions}
        assert set().union(*map(_words, element)) <= have
        compared += 1
    assert compared > 60


@pytest.mark.slow
def test_features_exist_in_registry() -> None:
    """Every feature of the table that the installed registry could know is spelt as one of its structure members."""
    root = _registry()
    members = {member.text for member in root.findall("./types/type[@category='struct']/member/name")}
    known = {str(extension.get("name")) for extension in root.findall("./extensions/extension")}
    compared = 0
    for alternatives in requirements(CAPABILITIES).values():
        for alternative in alternatives:
            feature = alternative.feature
            old = not alternative.extensions or known.intersection(alternative.extensions)
            if feature and not feature.startswith("subgroup:") and old and (alternative.versions != ((1, 4),)):
                if feature not in members:
                    # A feature may have been added to an extension's successor since.
                    assert not known.issuperset(alternative.extensions), feature
                    continue
                compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("capability", "needed"),
    [
        ("Float64", "shaderFloat64"),
        ("Int64", "shaderInt64"),
        ("Int16", "shaderInt16"),
        ("Float16", "shaderFloat16"),
        ("Int8", "shaderInt8"),
        ("StorageBuffer16BitAccess", "storageBuffer16BitAccess"),
        ("StorageBuffer8BitAccess", "storageBuffer8BitAccess"),
        ("PhysicalStorageBufferAddresses", "bufferDeviceAddress"),
        ("VulkanMemoryModel", "vulkanMemoryModel"),
        ("VariablePointers", "variablePointers"),
        ("DotProduct", "shaderIntegerDotProduct"),
    ],
)
def test_core_feature(capability: str, needed: str) -> None:
    module = _module("Shader", capability)
    (sentence,) = _missing(module, (1, 3))
    assert capability in sentence
    assert needed in sentence
    assert _missing(module, (1, 1), frozenset({needed})) == []


def test_extension_feature_needs_its_extension() -> None:
    for capability, feature, extension in (
        ("CooperativeMatrixKHR", "cooperativeMatrix", "VK_KHR_cooperative_matrix"),
        ("AtomicFloat32AddEXT", "shaderSharedFloat32AtomicAdd", "VK_EXT_shader_atomic_float"),
    ):
        module = _module(capability)
        assert _missing(module, (1, 3), frozenset({feature}), frozenset({extension})) == []
        assert _missing(module, (1, 3), frozenset({feature}))
        (sentence,) = _missing(module, (1, 3), NONE, frozenset({extension}))
        assert feature in sentence and extension in sentence
    other = frozenset({"VK_NV_cooperative_matrix"})
    assert _missing(_module("CooperativeMatrixKHR"), (1, 3), frozenset({"cooperativeMatrix"}), other)


def test_subgroup_operations() -> None:
    module = _module("GroupNonUniform", "GroupNonUniformArithmetic", "GroupNonUniformShuffleRelative")
    assert len(_missing(module, (1, 1))) == 3
    (sentence,) = _missing(module, (1, 1), subgroup_operations=frozenset({"basic", "arithmetic"}))
    assert "shuffle_relative" in sentence
    everything = frozenset({"basic", "arithmetic", "shuffle_relative"})
    assert _missing(module, (1, 1), subgroup_operations=everything) == []
    assert len(_missing(module, (1, 0), subgroup_operations=everything)) == 3


def test_not_allowed_and_unknown() -> None:
    (kernel,) = _missing(_module("Kernel"), (1, 3))
    assert "not allowed in Vulkan" in kernel
    (unknown,) = _missing(_module("Capability(60000)"), (1, 3))
    assert "pumice does not know SPIR-V capability Capability(60000)" in unknown
    assert "a newer pumice may" in unknown
    (extension,) = _missing(_module(extensions=("SPV_XYZ_nothing",)), (1, 3))
    assert "SPV_XYZ_nothing" in extension


def test_the_device_lacks_it_or_pumice_leaves_it_off() -> None:
    mesh = _module("MeshShadingEXT")
    (lacks,) = _missing(mesh, (1, 3))
    assert lacks.endswith("the device or its driver lacks it")
    (off,) = missing_requirements(
        mesh,
        api_version=(1, 3),
        features=NONE,
        extensions=NONE,
        subgroup_operations=NONE,
        offered=frozenset({"VK_EXT_mesh_shader"}),
    )
    assert "the device has VK_EXT_mesh_shader, but pumice does not use it" in off


def test_an_extension_says_nothing_that_its_capability_has_said() -> None:
    (sentence,) = _missing(_module("BFloat16TypeKHR", extensions=("SPV_KHR_bfloat16",)), (1, 3))
    assert "shaderBFloat16Type" in sentence and "VK_KHR_shader_bfloat16" in sentence


def test_hints_need_no_device() -> None:
    module = _module("ExpectAssumeKHR", extensions=("SPV_KHR_expect_assume", "SPV_GOOGLE_user_type"))
    assert _missing(module, (1, 2)) == []
    assert lacking_hints(module, (1, 4), frozenset({"VK_GOOGLE_user_type"})) == set()
    assert lacking_hints(module, (1, 2), NONE) == {"SPV_KHR_expect_assume", "SPV_GOOGLE_user_type"}


def test_spirv_extensions() -> None:
    module = _module(extensions=("SPV_KHR_storage_buffer_storage_class",))
    (sentence,) = _missing(module)
    assert "Vulkan 1.1, or VK_KHR_storage_buffer_storage_class" in sentence
    assert _missing(module, (1, 1)) == []
    assert _missing(module, extensions=frozenset({"VK_KHR_storage_buffer_storage_class"})) == []


@pytest.mark.parametrize(
    ("version", "core"),
    [((1, 0), (1, 0)), ((1, 1), (1, 1)), ((1, 3), (1, 1)), ((1, 4), (1, 2)), ((1, 5), (1, 2)), ((1, 6), (1, 3))],
)
def test_spirv_versions(version: tuple[int, int], core: tuple[int, int]) -> None:
    module = _module(version=version)
    assert _missing(module, core) == []
    if core > (1, 0):
        (sentence,) = _missing(module, (core[0], core[1] - 1))
        assert f"SPIR-V {version[0]}.{version[1]} needs Vulkan {core[0]}.{core[1]}" in sentence
    extension = frozenset({"VK_KHR_spirv_1_4"})
    assert (_missing(module, (1, 1), extensions=extension) == []) == (version <= (1, 4))
