"""Generates `hal_vulkan/instance/feature_tables.py` from the Vulkan registry.

Run it as ``python tests/support/devices/build_features.py vk.xml``, with the file of Vulkan-Headers
(https://github.com/KhronosGroup/Vulkan-Headers, ``registry``; package ``libvulkan-dev``).

Only names and numbers are taken: of the core's feature structures, and of the extensions that compute shaders and
images use, which are those that the registry names for SPIR-V without what only graphics and ray-tracing pipelines
use, the others below, and what they depend on.
"""

from __future__ import annotations

import re
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

_BASELINE: Final = (1, 2)  # what pumice needs of any device
_WIDTH: Final = 118
_NO_COMPUTE: Final = re.compile(
    r"mesh|fragment|barycentric|ray_tracing_(pipeline|invocation|motion|linear)|VK_NV_ray_tracing$|micromap|cluster|"
    r"transform_feedback|shading|viewport|geometry|sample_mask|stencil|multiview|tile_image|post_depth|conservative|"
    r"explicit_vertex|device_group|draw_parameters|demote|enqueue|data_graph|graph|"
    # Other ways to bind, and an extension that may not be enabled beside its successor.
    r"descriptor_(heap|buffer)|mutable_descriptor|push_constant_bank|VK_EXT_buffer_device_address"
)
# For execution without a capability of SPIR-V's, for the runtime, and for images and samplers.
_OTHERS_TABLE: Final = """
EXT_subgroup_size_control KHR_maintenance4 KHR_maintenance8 KHR_maintenance9 KHR_zero_initialize_workgroup_memory
EXT_shader_image_atomic_int64
KHR_synchronization2 EXT_pipeline_creation_cache_control KHR_portability_subset
EXT_4444_formats EXT_texture_compression_astc_hdr EXT_custom_border_color EXT_non_seamless_cube_map
EXT_image_2d_view_of_3d KHR_format_feature_flags2
"""
_OTHERS: Final = frozenset(f"VK_{name}" for name in _OTHERS_TABLE.split())

Tokens = frozenset[str]


class _Registry:
    """The parts of vk.xml that the tables need."""

    def __init__(self, root: ET.Element) -> None:
        self.extensions = {
            str(one.get("name")): one
            for one in root.findall("./extensions/extension")
            if "vulkan" in str(one.get("supported")).split(",") and one.get("type") == "device"
        }
        self.structures = {str(one.get("name")): one for one in root.findall("./types/type[@category='struct']")}
        self.members = {
            name: [str(member.findtext("name")) for member in one.findall("member")][2:]
            for name, one in self.structures.items()
            if "VkPhysicalDeviceFeatures2" in str(one.get("structextends")).split(",") and not one.get("alias")
        }
        self.core_members = [
            str(member.findtext("name")) for member in self.structures["VkPhysicalDeviceFeatures"].findall("member")
        ]
        version = next(one for one in root.findall("./types/type") if one.findtext("name") == "VK_HEADER_VERSION")
        complete = max(_version(str(one.get("number"))) for one in root.findall("./feature") if one.get("number"))
        self.version = f"{complete[0]}.{complete[1]}.{''.join(version.itertext()).split()[-1]}"
        self._types: dict[str, int] = {}  # VkStructureType: a value, or an offset among an extension's values
        for extension in root.findall("./extensions/extension"):
            for one in extension.iter("enum"):
                if one.get("extends") == "VkStructureType" and one.get("offset"):
                    number = int(str(one.get("extnumber") or extension.get("number")))
                    self._types[str(one.get("name"))] = _extension_value(number, int(str(one.get("offset"))))
        for feature in root.findall("./feature"):
            for one in feature.iter("enum"):
                if one.get("extends") == "VkStructureType":
                    name, number = str(one.get("name")), one.get("extnumber")
                    value = int(str(one.get("value"))) if one.get("value") else None
                    if value is None and number:
                        value = _extension_value(int(number), int(str(one.get("offset"))))
                    if value is not None:
                        self._types[name] = value
        named = {str(one.get("extension")) for one in root.iter("enable") if one.get("extension")}
        named |= {part for one in root.iter("enable") for part in re.findall(r"VK_\w+", str(one.get("requires")))}
        self.spirv_extensions = named

    def structure_type(self, name: str) -> int:
        member = self.structures[name].find("member")
        assert member is not None
        return self._types[str(member.get("values"))]

    def promoted(self, extension: str) -> tuple[int, int] | None:
        """The core version that has an extension, directly or by way of another one."""
        target = self.extensions[extension].get("promotedto")
        if target and target.startswith("VK_VERSION_"):
            return _version(target.removeprefix("VK_VERSION_"))
        return self.promoted(target) if target in self.extensions else None

    def structures_of(self, extension: str) -> list[str]:
        names = []
        # An extension may add structures where another one is enabled too: not those.
        for require in self.extensions[extension].findall("require"):
            if not require.get("depends"):
                for one in require.findall("type"):
                    name = str(one.get("name"))
                    names.append(str(self.structures[name].get("alias") or name) if name in self.structures else name)
        return [name for name in names if name in self.members]

    def needs(self, extension: str) -> list[Tokens]:
        """Returns the alternative dependencies of an extension; none where Vulkan 1.2 satisfies them."""
        text = self.extensions[extension].get("depends")
        return self._minimal(_alternatives(text)) if text else [frozenset()]

    def _minimal(self, alternatives: list[Tokens]) -> list[Tokens]:
        reduced = []
        for one in alternatives:
            left = set()
            for token in one:
                if token.startswith("VK_VERSION_"):
                    version = _version(token.removeprefix("VK_VERSION_"))
                    left |= {".".join(map(str, version))} if version > _BASELINE else set()
                elif token in self.extensions:
                    left |= {token} if (self.promoted(token) or (9, 9)) > _BASELINE else set()
            reduced.append(frozenset(left))
        return [frozenset()] if frozenset() in reduced else list(dict.fromkeys(reduced))


def _version(text: str) -> tuple[int, int]:
    major, minor = re.split(r"[._]", text)
    return int(major), int(minor)


def _extension_value(number: int, offset: int) -> int:
    return 1_000_000_000 + (number - 1) * 1000 + offset


def _alternatives(text: str) -> list[Tokens]:
    """A ``depends`` expression, with ``+`` for and, ``,`` for or and no precedence between them, as alternatives."""
    tokens = re.findall(r"[\w:]+|[()+,]", text)

    def operand() -> list[Tokens]:
        token = tokens.pop(0)
        if token != "(":
            return [frozenset({token})]
        inside = expression()
        tokens.pop(0)
        return inside

    def expression() -> list[Tokens]:
        left = operand()
        while tokens and tokens[0] in "+,":
            operator, right = tokens.pop(0), operand()
            left = left + right if operator == "," else [one | two for one in left for two in right]
        return left

    return expression()


def feature_tables(registry: bytes) -> str:
    """The text of `feature_tables.py` for the bytes of ``vk.xml``."""
    known = _Registry(ET.fromstring(registry))
    wanted = {name for name in known.spirv_extensions if not _NO_COMPUTE.search(name)} | _OTHERS
    pending, extensions = sorted(wanted & known.extensions.keys()), set[str]()
    while pending:
        name = pending.pop()
        if name not in extensions and (known.promoted(name) or (9, 9)) > _BASELINE:
            extensions.add(name)
            pending += [token for one in known.needs(name) for token in one if token in known.extensions]
    structures: dict[str, list[str]] = {}
    for name in sorted(extensions):
        for structure in known.structures_of(name):
            structures.setdefault(structure, []).append(name)
    rows = [f"{known.structure_type('VkPhysicalDeviceFeatures2')} | 1.0 | | {' '.join(known.core_members)}"]
    for structure in sorted(known.members):
        if core := re.fullmatch(r"VkPhysicalDeviceVulkan(\d)(\d)Features", structure):
            rows.append(_row(known, structure, f"{core[1]}.{core[2]}", ""))
    for structure in sorted(structures, key=known.structure_type):
        versions = [v for v in map(known.promoted, structures[structure]) if v]
        until = f"-{'.'.join(map(str, min(versions)))}" if versions else ""
        rows.append(_row(known, structure, until, " ".join(structures[structure])))
    named: dict[str, list[str]] = {}
    for name in sorted(extensions):
        alternatives = ", ".join(" ".join(sorted(one)) for one in known.needs(name))
        core = ".".join(map(str, known.promoted(name) or "-"))
        named.setdefault(f"{core} | {alternatives}", []).append(name if name in wanted else f"{name}*")
    needs = [f"{facts} | {' '.join(names)}" for facts, names in sorted(named.items())]
    return "\n".join(
        [
            '"""Vulkan\'s feature structures and the extensions that compute uses.',
            "",
            "Generated by `tests/support/devices/build_features.py`: do not edit.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import Final",
            "",
            f'VERSION: Final = "{known.version}"',
            "",
            "# sType | the core version that has it, or -version: chained before that one only | extensions, any of",
            "# which has it | its members, each a VkBool32, in order. The first row is VkPhysicalDeviceFeatures2.",
            *_table("STRUCTURES", rows),
            "",
            "# The core version that has them, or - | what they depend on beyond 1.2: alternatives | extensions:",
            "# those that only others need end in *.",
            *_table("EXTENSIONS", needs),
            "",
        ]
    )


def _row(known: _Registry, structure: str, core: str, extensions: str) -> str:
    types = {str(one.findtext("type")) for one in known.structures[structure].findall("member")[2:]}
    assert types == {"VkBool32"}, structure
    return f"{known.structure_type(structure)} | {core} | {extensions} | {' '.join(known.members[structure])}"


def _table(name: str, rows: list[str]) -> list[str]:
    lines = [f'{name}: Final = """']
    for row in rows:
        lines += textwrap.wrap(row, _WIDTH, subsequent_indent=" ", break_on_hyphens=False, break_long_words=False)
    return [*lines, '"""']


def main() -> None:
    """Writes `feature_tables.py`."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tests/support/devices/build_features.py vk.xml")
    target = Path(__file__).resolve().parents[3] / "hal_vulkan" / "instance" / "feature_tables.py"
    target.write_text(feature_tables(Path(sys.argv[1]).read_bytes()), encoding="utf-8")


if __name__ == "__main__":
    main()
