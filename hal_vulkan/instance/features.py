"""Vulkan's feature booleans: their structures, those that compute uses, and chains of the structures.

The facts are in `feature_tables.py`, made from the registry. Every structure consists of a header and booleans, so
these tables suffice to lay out a chain, including structures newer than the binding's declarations.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Set
from typing import Final, NamedTuple

from ...spirv.checks.requirement_tables import CAPABILITIES
from ...spirv.checks.requirements import requirements
from ..vulkan.functions import CData, ffi
from .feature_tables import EXTENSIONS, STRUCTURES

Version = tuple[int, int]

_NEVER: Final = (99, 0)
# Of the core's structures, compute uses the booleans that SPIR-V's capabilities name, and these: for the execution and
# memory layout of kernels, for arrays of descriptors, for images and samplers, and for the runtime.
_CORE_TABLE: Final = """
scalarBlockLayout uniformBufferStandardLayout shaderSubgroupExtendedTypes subgroupBroadcastDynamicId subgroupSizeControl
computeFullSubgroups maintenance4 shaderZeroInitializeWorkgroupMemory vulkanMemoryModelAvailabilityVisibilityChains
shaderSubgroupRotateClustered shaderTerminateInvocation

descriptorIndexing descriptorBindingUniformBufferUpdateAfterBind descriptorBindingSampledImageUpdateAfterBind
descriptorBindingStorageImageUpdateAfterBind descriptorBindingStorageBufferUpdateAfterBind
descriptorBindingUniformTexelBufferUpdateAfterBind descriptorBindingStorageTexelBufferUpdateAfterBind
descriptorBindingUpdateUnusedWhilePending descriptorBindingPartiallyBound descriptorBindingVariableDescriptorCount

samplerAnisotropy textureCompressionETC2 textureCompressionASTC_LDR textureCompressionBC textureCompressionASTC_HDR
shaderStorageImageExtendedFormats samplerMirrorClampToEdge samplerFilterMinmax

hostQueryReset timelineSemaphore synchronization2 pipelineCreationCacheControl pushDescriptor
"""
_CORE: Final = frozenset(_CORE_TABLE.split())
# Of the extensions' structures, all booleans are used except those for sparse memory, tools that replay captures,
# groups of devices, ray-tracing pipelines and lost devices, and those that cost speed.
_LEFT_OUT: Final = re.compile(r"sparse|CaptureReplay|Robust|MultiDevice|^deviceFault|^rayTracingPipeline")


class FeatureStructure(NamedTuple):
    """One structure of features.

    Attributes:
        type: the structure's ``sType``.
        since, until: the core version from which the structure is chained, and the version below which any of
            ``extensions`` chains it.
        extensions: the extensions that have the structure, each by itself.
        members: the names of all its booleans in order.
        used: the names of the booleans that compute uses.
    """

    type: int
    since: Version
    until: Version
    extensions: tuple[str, ...]
    members: tuple[str, ...]
    used: tuple[str, ...]

    def offered(self, version: Version, extensions: frozenset[str]) -> bool:
        """Whether a device of this version and these extensions has the structure."""
        return version >= self.since or (version < self.until and not extensions.isdisjoint(self.extensions))


class Extension(NamedTuple):
    """An extension that compute uses: the core version that has it, and its dependencies, as alternatives.

    ``serves`` is false if only other extensions need it.
    """

    core: Version
    needs: tuple[frozenset[str], ...]
    serves: bool


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


def _rows(table: str) -> Iterator[str]:
    yield from table.replace("\n ", " ").strip().split("\n")


@functools.cache
def feature_structures() -> tuple[FeatureStructure, ...]:
    """Returns every structure that may be chained, ``VkPhysicalDeviceFeatures2`` first."""
    named = {
        requirement.feature for alternatives in requirements(CAPABILITIES).values() for requirement in alternatives
    }
    structures = []
    for row in _rows(STRUCTURES):
        kind, core, extensions, members = (field.strip() for field in row.split("|"))
        names = tuple(members.split())
        of_core = bool(core) and core[0] != "-"
        structures.append(
            FeatureStructure(
                type=int(kind),
                since=_version(core) if of_core else _NEVER,
                until=_version(core[1:]) if core.startswith("-") else _NEVER,
                extensions=tuple(extensions.split()),
                members=names,
                used=tuple(n for n in names if (n in named or n in _CORE if of_core else not _LEFT_OUT.search(n))),
            )
        )
    return tuple(structures)


@functools.cache
def known_extensions() -> dict[str, Extension]:
    """Returns the extensions that compute uses."""
    extensions = {}
    for row in _rows(EXTENSIONS):
        core, needs, names = (field.strip() for field in row.split("|"))
        alternatives = tuple(frozenset(alternative.split()) for alternative in needs.split(","))
        for name in names.split():
            extensions[name.rstrip("*")] = Extension(
                _NEVER if core == "-" else _version(core), alternatives, name[-1] == "*"
            )
    return extensions


def needed_extensions(version: Version, usable: frozenset[str]) -> frozenset[str]:
    """Returns the extensions to enable: the useful extensions, and their dependencies."""
    known = known_extensions()
    needed, pending = set[str](), [name for name in usable if not known[name].serves]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            holding = [
                alternative
                for alternative in known[name].needs
                if all(_holds(token, version, usable) for token in alternative)
            ]
            pending += [token for token in min(holding, key=len, default=()) if token in known]
    return frozenset(needed)


def _holds(token: str, version: Version, extensions: Set[str]) -> bool:
    return version >= _version(token) if token[0].isdigit() else token in extensions


def offered_extensions(version: Version, extensions: frozenset[str]) -> frozenset[str]:
    """Returns the known extensions outside a device's core version that it offers with their dependencies."""
    known = known_extensions()
    offered = {name for name in known.keys() & extensions if version < known[name].core}
    while True:
        lacking = {
            name
            for name in offered
            if not any(
                all(_holds(token, version, offered) for token in alternative) for alternative in known[name].needs
            )
        }
        if not lacking:
            return frozenset(offered)
        offered -= lacking


class FeatureChain:
    """A device's feature structures, linked through ``pNext``.

    Attributes:
        head: the memory, which starts with ``VkPhysicalDeviceFeatures2``; it holds the whole chain.
    """

    def __init__(self, version: Version, extensions: frozenset[str]) -> None:
        self._structures = [offered for offered in feature_structures() if offered.offered(version, extensions)]
        header = ffi.sizeof("VkBaseOutStructure")
        sizes = [-(-(header + 4 * len(offered.members)) // 8) * 8 for offered in self._structures]
        self.head: CData = ffi.new("uint64_t[]", sum(sizes) // 8)
        at = ffi.cast("char *", self.head)
        self._flags: list[CData] = []
        for index, (structure, size) in enumerate(zip(self._structures, sizes, strict=True)):
            start = ffi.cast("VkBaseOutStructure *", at)
            ffi.cast("uint32_t *", at)[0] = structure.type  # an enumerant that the binding may lack
            self._flags.append(ffi.cast("VkBool32 *", at + header))
            at += size
            if index + 1 < len(sizes):
                start.pNext = ffi.cast("VkBaseOutStructure *", at)

    @property
    def names(self) -> frozenset[str]:
        """The features that are set."""
        return frozenset(
            name
            for structure, flags in zip(self._structures, self._flags, strict=True)
            for index, name in enumerate(structure.members)
            if flags[index]
        )

    def keep(self, names: frozenset[str]) -> None:
        """Clears features that are set but not named."""
        for structure, flags in zip(self._structures, self._flags, strict=True):
            for index, name in enumerate(structure.members):
                flags[index] = bool(flags[index]) and name in names
