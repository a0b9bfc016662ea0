"""The bindings and push constants that a module declares, whether an entry point uses them or not.

Compilers keep declarations that no code uses, so that several passes of a program can share one list of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..binary.grammar import Decoration, StorageClass
from .module import Module
from .reflection_types import Declaration
from .type_table import TypeKind

# Nested arrays of bindings: real ones have one or two dimensions.
_MAX_DIMENSIONS: Final = 8
_MAX_COUNT: Final = 0xFFFFFFFF


def declared_bindings(module: Module) -> tuple[Declaration, ...]:
    """Returns the bindings by set, then by binding; variables that share a binding are one declaration."""
    names: dict[tuple[int, int], list[str]] = {}
    counts: dict[tuple[int, int], int] = {}
    for variable in module.variables.values():
        binding = module.decoration(variable.id, Decoration.Binding)
        if binding is None:
            continue
        key = module.decoration(variable.id, Decoration.DescriptorSet) or 0, binding
        of, count = module.types.get(variable.pointee), 1
        for _ in range(_MAX_DIMENSIONS):
            if of is None or of.kind not in (TypeKind.ARRAY, TypeKind.RUNTIME_ARRAY):
                break
            count = min(count * (of.count or 0), _MAX_COUNT)
            of = module.types.get(of.element)
        structure = module.names.get(of.id, "") if of is not None and of.kind is TypeKind.STRUCT else ""
        names.setdefault(key, []).extend(filter(None, [module.names.get(variable.id, ""), structure]))
        counts.setdefault(key, count)
    return tuple(Declaration(*key, counts[key], tuple(dict.fromkeys(names[key]))) for key in sorted(names))


def declared_push_constants(module: Module) -> tuple[str, ...]:
    """Returns the names of the members of all push constant blocks."""
    return tuple(dict.fromkeys(_push_names(module)))


def _push_names(module: Module) -> Iterator[str]:
    pushed = (v.pointee for v in module.variables.values() if v.storage_class == StorageClass.PushConstant)
    for block in dict.fromkeys(pushed):
        of = module.types.get(block)
        for index in range(len(of.members) if of is not None else 0):
            if name := module.member_names.get((block, index), ""):
                yield name
