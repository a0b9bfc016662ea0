"""The ways in which a device can meet the needs of a capability or an extension of SPIR-V.

Sources: see `requirement_tables`.
"""

from __future__ import annotations

import functools
from typing import Final

from ...base.lazy_dataclass import dataclass

_SUBGROUP: Final = "subgroup:"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way in which a device can allow a capability or extension; all its parts must hold.

    Attributes:
        feature: a feature, a boolean property, or ``"subgroup:<operation>"``; ``""`` if none is needed.
        versions: the core versions that have it.
        extensions: the extensions that have it. One of these extensions or ``versions`` is enough; both may be empty.
    """

    feature: str
    versions: tuple[tuple[int, int], ...]
    extensions: tuple[str, ...]

    def __str__(self) -> str:
        origin = " or ".join([*(f"Vulkan {major}.{minor}" for major, minor in self.versions), *self.extensions])
        if not self.feature:
            return origin
        if self.feature.startswith(_SUBGROUP):
            name = f"the subgroup operation {self.feature.removeprefix(_SUBGROUP)}"
        else:
            name = f"the feature {self.feature}"
        return f"{name} (of {origin})" if origin else name

    def satisfied(
        self,
        api_version: tuple[int, int],
        features: frozenset[str],
        extensions: frozenset[str],
        subgroup_operations: frozenset[str],
    ) -> bool:
        """Whether a device allows this; arguments as in `missing_requirements`."""
        core = any(api_version >= version for version in self.versions)
        available = core or any(extension in extensions for extension in self.extensions)
        if not self.feature:
            return available
        if self.feature.startswith(_SUBGROUP):
            return available and self.feature.removeprefix(_SUBGROUP) in subgroup_operations
        # A name that several extensions share (cooperativeMatrix) needs the named extension. A core feature's name is
        # enough: drivers may offer it through an extension that was promoted under another name.
        return self.feature in features and (available or bool(self.versions) or not self.extensions)


def _alternative(text: str) -> Alternative:
    feature, _, origin = text.partition("@")
    if feature[0].isdigit() or feature.startswith("VK_"):
        feature, origin = "", text
    origins = origin.split(",") if origin else []
    versions = [item.split(".") for item in origins if item[0].isdigit()]
    return Alternative(
        feature,
        tuple((int(major), int(minor)) for major, minor in versions),
        tuple(item for item in origins if not item[0].isdigit()),
    )


@functools.cache
def requirements(table: str) -> dict[str, tuple[Alternative, ...]]:
    """Returns the entries of a table, each with the ways in which a device can allow it."""
    entries: dict[str, tuple[Alternative, ...]] = {}
    for line in table.replace("\n ", " ").strip().splitlines():
        name, needs = line.split(maxsplit=1)
        if "*" in name:
            infix = name.removeprefix("VK_*").strip("_*")
            for spirv_name in needs.split():
                _, vendor, rest = spirv_name.split("_", 2)
                entries[spirv_name] = (Alternative("", (), ("_".join(filter(None, ("VK", vendor, infix, rest))),)),)
        else:
            entries[name] = tuple(_alternative(text.strip()) for text in needs.split("|"))
    return entries
