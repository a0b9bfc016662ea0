"""SPIR-V reflection: what a compute shader needs, read from its binary.

`reflect` takes the bytes of a module and gives a `ShaderModuleReflection`: entry points with workgroup size, descriptor
bindings, push constants and workgroup memory, and the module's specialization constants, capabilities and extensions.
Everything is plain frozen data, safe to share between threads; `to_json` on each class gives it as JSON values.
"""

from __future__ import annotations

from .reflect import reflect
from .reflection_types import (
    Binding,
    BlockMember,
    ElementLayout,
    EntryPoint,
    JsonValue,
    PushConstantBlock,
    ScalarKind,
    ScalarType,
    ShaderModuleReflection,
    SpecializationConstant,
)

__all__ = [
    "Binding",
    "BlockMember",
    "ElementLayout",
    "EntryPoint",
    "JsonValue",
    "PushConstantBlock",
    "ScalarKind",
    "ScalarType",
    "ShaderModuleReflection",
    "SpecializationConstant",
    "reflect",
]
