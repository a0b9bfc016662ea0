"""Features of OpenGL's shaders that Vulkan lacks: bindings numbered by kind, and initial values of uniforms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from ...status import PumiceError
from ..binary.grammar import Decoration, Op, StorageClass
from ..binary.words import BOUND, HEADER_WORDS, encode, pack
from ..reflection.access import AccessAnalysis
from ..reflection.module import Module, Variable
from ..reflection.type_table import TypeKind
from .includes import without_comments

InitialValue: TypeAlias = "bool | int | float | list[bool | int | float]"

# The same distances as those of HLSL's registers.
_BUFFER, _IMAGE, _TEXTURE, _BLOCK = 0, 100, 200, 300
_INITIALIZED: Final = re.compile(r"\buniform\s+(?:(?:high|medium|low)p\s+)?\w+\s+(\w+)\s*(?:\[\w*\]\s*)?=\s*([^;]+);")
_NUMBER: Final = re.compile(
    r"([-+]?)(?:(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)[uU]?|((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:lf|LF|[fF])?)"
)
_CONSTRUCTED: Final = re.compile(r"(?:[biud]?vec([234])|\w+\s*\[\w*\]|float|double|u?int|bool)\s*\(([^()]*)\)")
_RESOURCES: Final = (StorageClass.UniformConstant, StorageClass.Uniform, StorageClass.StorageBuffer)


def with_vulkan_rules(code: bytes) -> bytes:
    """Returns a module of a compute shader in GLSL without what compilers leave of OpenGL's.

    - Each binding is for one kind of resource. Where an entry point uses two kinds by one number, storage buffers keep
      theirs, and 100 is added to those of images, 200 of textures, and 300 of uniform blocks.
    - Samplers and images have no location.
    - Atomic operations have values of their own type; glslang 12 gives counters signed ones.
    - Each decoration is there once; glslang decorates counters as coherent twice.
    """
    try:
        module = Module(code)
        access = AccessAnalysis(module)
        used = {variable for _, function, _ in module.entry_points for variable in access.entry(function)}
    except PumiceError:  # a module that reflection refuses later, with its own message
        return code
    kinds: dict[tuple[int, int], set[int]] = {}
    shifts: dict[int, int] = {}
    for variable in module.variables.values():
        binding = module.decoration(variable.id, Decoration.Binding)
        if binding is None or variable.storage_class not in _RESOURCES:
            continue
        shifts[variable.id] = kind = _kind(module, variable)
        if variable.id in used:
            key = module.decoration(variable.id, Decoration.DescriptorSet) or 0, binding
            kinds.setdefault(key, set()).add(kind)
    if all(len(several) == 1 for several in kinds.values()):
        shifts = dict.fromkeys(shifts, 0)
    return _rewritten(module, shifts)


def _rewritten(module: Module, shifts: Mapping[int, int]) -> bytes:
    """Returns the module with bindings of resources moved, without their locations, with atomics of one type,
    and each decoration once.
    """
    words = module.words
    types: dict[int, int] = {}
    constants: dict[tuple[int, int], int] = {}
    result = list(words[:HEADER_WORDS])
    globals_end = 0
    added: list[int] = []
    decorations: set[tuple[int, ...]] = set()
    for opcode, start, end in module.binary:
        instruction = list(words[start:end])
        if opcode in (Op.Decorate, Op.MemberDecorate):
            if tuple(instruction) in decorations:
                continue
            decorations.add(tuple(instruction))
        if opcode == Op.Decorate and instruction[1] in shifts:
            if instruction[2] == Decoration.Location:
                continue
            if instruction[2] == Decoration.Binding:
                instruction[3] += shifts[instruction[1]]
        elif opcode == Op.Constant and end - start == 4:
            types[instruction[2]] = instruction[1]
            constants.setdefault((instruction[1], instruction[3]), instruction[2])
        elif opcode == Op.Function:
            globals_end = globals_end or len(result)
        elif opcode in (Op.AtomicIAdd, Op.AtomicISub) and types.get(instruction[6], instruction[1]) != instruction[1]:
            key = instruction[1], next(bits for (_, bits), known in constants.items() if known == instruction[6])
            if key not in constants:
                constants[key] = result[BOUND]
                result[BOUND] += 1
                added += encode(Op.Constant, key[0], constants[key], key[1])
            instruction[6] = constants[key]
        result += instruction
    return pack([*result[:globals_end], *added, *result[globals_end:]])


def _kind(module: Module, variable: Variable) -> int:
    """Returns the number that is added to a variable's binding. Each kind of resource has its own."""
    of = module.types.get(variable.pointee)
    while of is not None and of.kind in (TypeKind.ARRAY, TypeKind.RUNTIME_ARRAY):
        of = module.types.get(of.element)
    if of is not None and of.kind is TypeKind.IMAGE:
        return _IMAGE if of.image is not None and of.image.storage else _TEXTURE
    if of is not None and of.kind in (TypeKind.SAMPLED_IMAGE, TypeKind.SAMPLER):
        return _TEXTURE
    is_uniform = variable.storage_class == StorageClass.Uniform
    if of is not None and is_uniform and module.decoration(of.id, Decoration.BufferBlock) is None:
        return _BLOCK
    return _BUFFER


def initial_values(text: str) -> dict[str, InitialValue]:
    """Returns the literals that a source gives to its uniforms, as ``uniform float rate = 0.1;``.

    Compilers for Vulkan drop them. A uniform that is declared several times with different values is left out.
    """
    values: dict[str, InitialValue] = {}
    different = set()
    for name, expression in _INITIALIZED.findall(without_comments(text.encode()).decode()):
        value = _constant(expression.strip())
        if value is None or values.setdefault(name, value) != value:
            different.add(name)
    return {name: value for name, value in values.items() if name not in different}


def _constant(expression: str) -> InitialValue | None:
    """Returns the value of a literal, or of a vector or an array of them; ``None`` for other expressions."""
    if expression in ("true", "false"):
        return expression == "true"
    if number := _NUMBER.fullmatch(expression):
        sign = -1 if number[1] == "-" else 1
        if number[2] is None:
            return sign * float(number[3])
        return sign * int(number[2], 16 if number[2][:2] in ("0x", "0X") else 8 if number[2][0] == "0" else 10)
    constructed = _CONSTRUCTED.fullmatch(expression)
    if constructed is None:
        return None
    items = [_constant(item.strip()) for item in constructed[2].split(",")]
    if any(item is None or isinstance(item, list) for item in items):
        return None
    flat = [item for item in items if item is not None and not isinstance(item, list)]
    if constructed[1]:
        size = int(constructed[1])
        return flat * size if len(flat) == 1 else flat if len(flat) == size else None
    is_array = "[" in expression.partition("(")[0]
    return flat if is_array else flat[0] if len(flat) == 1 else None
