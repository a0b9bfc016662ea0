"""Bindings of HLSL's and Slang's resources, after the compiler has assigned them.

A register is the binding of its number; a resource without a register gets a free binding from the compiler. Registers
count from 0 for each kind of resource, where Vulkan has one row of bindings a set. So where two kinds share a number,
the kinds are shifted apart. Compilers differ in the counters of append and consume buffers, which have neither register
nor name in the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ..binary.grammar import Decoration, Op, StorageClass, opcodes_of
from ..binary.words import HEADER_WORDS, encode, pack, string_words
from ..reflection.access import AccessAnalysis
from ..reflection.module import Module, Variable
from ..reflection.type_table import TypeKind
from .includes import without_comments

_APART: Final[Mapping[str, int]] = MappingProxyType({"t": 0, "u": 100, "s": 200, "b": 300})
_REGISTER: Final = re.compile(rb"\bregister\s*\(\s*([tusb])(\d+)\s*(?:,\s*space(\d+)\s*)?\)")
_FIXED: Final = re.compile(rb"\bvk\s*::\s*binding\s*\([^)]*\)\s*\]\]([^;{]*)[;{]")
_COMBINED: Final = re.compile(rb"\bvk\s*::\s*combinedImageSampler\b")
_TEMPLATE: Final = re.compile(rb"<.*>|\[\[.*?\]\]", re.DOTALL)
_DECLARATOR: Final = re.compile(rb"(\w+)\s*(?:[:=\[].*)?$", re.DOTALL)
# The names that Slang, glslang and dxc give to the parts of a buffer with a counter.
_ELEMENTS: Final = re.compile(r"(.+)\.elements")
_COUNTER: Final = re.compile(r"(.+)(?:\.counter|@count)|counter\.var\.(.+)")
_CLASSES: Final = frozenset({StorageClass.UniformConstant, StorageClass.Uniform, StorageClass.StorageBuffer})
_ANNOTATED: Final = frozenset(opcodes_of("Type-Declaration"))


@dataclass(slots=True)
class _Resource:
    """A variable with a binding.

    Attributes:
        kind: the kind of register, ``t``, ``u``, ``s`` or ``b``.
        owner: the name of the buffer that it counts for; ``""`` for all but counters.
        set, binding: the numbers; ``None`` where the compiler gave none.
        fixed: whether the source gives the binding of Vulkan.
        register: the register whose number the binding is; ``""`` for those with a binding of Vulkan.
    """

    id: int
    name: str
    kind: str
    owner: str
    set: int | None
    binding: int | None
    fixed: bool
    register: str


def with_bindings(code: bytes, texts: Iterable[bytes]) -> bytes:
    """Returns the module with the bindings and names of its resources settled.

    Args:
        code: a module that was compiled from HLSL or Slang.
        texts: the source and the files that it includes.

    Raises:
        InvalidArgumentError: the source gives two resources of one entry point the same binding.
    """
    bare = [without_comments(text) for text in texts]
    module = Module(code)
    resources = _resources(module, _fixed_names(bare))
    access = AccessAnalysis(module)
    used = [[r for r in resources.values() if r.id in access.entry(entry)] for _, entry, _ in module.entry_points]
    is_combined = any(_COMBINED.search(text) for text in bare)
    if _shares_numbers(bare) or any(_kinds_collide(entry, is_combined) for entry in used):
        for resource in resources.values():
            if resource.binding is not None and not resource.fixed:
                resource.binding += _APART[resource.kind]
    _place_counters(list(resources.values()))
    for entry in used:
        _check_collisions(entry, is_combined)
    return _rewritten(module, resources)


def _shares_numbers(texts: Iterable[bytes]) -> bool:
    """Whether registers of two kinds have one number."""
    kinds: dict[tuple[bytes, bytes], bytes] = {}
    for text in texts:
        for kind, number, space in _REGISTER.findall(text):
            if kinds.setdefault((number, space or b"0"), kind) != kind:
                return True
    return False


def _fixed_names(texts: Iterable[bytes]) -> set[str]:
    """Returns the names of declarations with ``vk::binding``."""
    names = set()
    for text in texts:
        for declaration in _FIXED.findall(text):
            if name := _DECLARATOR.search(_TEMPLATE.sub(b" ", declaration).strip()):
                names.add(name[1].decode())
    return names


def _resources(module: Module, fixed: set[str]) -> dict[int, _Resource]:
    resources: dict[int, _Resource] = {}
    for variable in module.variables.values():
        kind = _kind(module, variable)
        if not kind:
            continue
        name = module.names.get(variable.id, "") or module.names.get(_base(module, variable), "")
        counter = _COUNTER.fullmatch(name)
        is_fixed = name.split(".")[0] in fixed
        binding = module.decoration(variable.id, Decoration.Binding)
        resources[variable.id] = _Resource(
            id=variable.id,
            name=name,
            kind=kind,
            owner=(counter[1] or counter[2]) if counter else "",
            set=module.decoration(variable.id, Decoration.DescriptorSet),
            binding=binding,
            fixed=is_fixed,
            register="" if is_fixed else f"{kind}{binding}",
        )
    return resources


def _base(module: Module, variable: Variable) -> int:
    of = module.types.get(variable.pointee)
    while of is not None and of.kind in (TypeKind.ARRAY, TypeKind.RUNTIME_ARRAY):
        of = module.types.get(of.element)
    return 0 if of is None else of.id


def _kind(module: Module, variable: Variable) -> str:
    """Returns the kind of register that HLSL has for a variable; ``""`` for one without a binding."""
    of = module.types.get(_base(module, variable))
    if of is None or variable.storage_class not in _CLASSES:
        return ""
    match of.kind:
        case TypeKind.SAMPLER:
            return "s"
        case TypeKind.IMAGE:
            return "u" if of.image is not None and of.image.storage else "t"
        case TypeKind.STRUCT:
            is_buffer_block = module.decoration(of.id, Decoration.BufferBlock) is not None
            if variable.storage_class == StorageClass.Uniform and not is_buffer_block:
                return "b"
            read_only = module.decoration(variable.id, Decoration.NonWritable) is not None or all(
                module.member_decoration(of.id, index, Decoration.NonWritable) is not None
                for index in range(len(of.members))
            )
            return "t" if read_only else "u"
    return "t"


def _kinds_collide(resources: Iterable[_Resource], is_combined: bool) -> bool:
    kinds: dict[tuple[int | None, int], str] = {}
    for resource in resources:
        if resource.binding is None or resource.fixed:
            continue
        kind = "t" if resource.kind == "s" and is_combined else resource.kind
        if kinds.setdefault((resource.set, resource.binding), kind) != kind:
            return True
    return False


def _place_counters(resources: list[_Resource]) -> None:
    """Moves counters that have no binding, or that of another resource, to the lowest free number."""
    owners = {(elements[1] if (elements := _ELEMENTS.fullmatch(r.name)) else r.name): r for r in resources}
    taken = {(r.set, r.binding) for r in resources if not r.owner}
    for resource in resources:
        if not resource.owner:
            continue
        owner = owners.get(resource.owner)
        if resource.set is None:
            resource.set = owner.set if owner is not None else 0
        if resource.binding is None or (resource.set, resource.binding) in taken:
            resource.binding = next(n for n in range(len(taken) + 1) if (resource.set, n) not in taken)
        taken.add((resource.set, resource.binding))


def _check_collisions(resources: Iterable[_Resource], is_combined: bool) -> None:
    placed: dict[tuple[int | None, int | None], _Resource] = {}
    for resource in resources:
        other = placed.setdefault((resource.set, resource.binding), resource)
        # Slang has a variable for each type that a byte buffer is accessed by.
        if other.name == resource.name or (other.fixed and resource.fixed):
            continue
        if is_combined and {other.kind, resource.kind} == {"t", "s"}:
            continue
        shared = f"binding, {resource.binding} of set {resource.set or 0}"
        if other.register and resource.register:
            shared = f"register, {resource.register}" + (f" of space {resource.set}" if resource.set else "")
        raise InvalidArgumentError(
            f"{other.name} and {resource.name} have the same {shared}: give them different registers, or none, for "
            "free bindings"
        )


def _rewritten(module: Module, resources: Mapping[int, _Resource]) -> bytes:
    words = module.words
    names = {name for names in (module.names, module.more_names) for name in names.values() if isinstance(name, str)}
    result = list(words[:HEADER_WORDS])
    pending = True
    for opcode, start, end in module.binary:
        resource = resources.get(words[start + 1]) if opcode in (Op.Name, Op.Decorate) else None
        if opcode in _ANNOTATED and pending:
            pending = False
            for known in resources.values():
                if known.binding is not None:
                    result += encode(Op.Decorate, known.id, Decoration.DescriptorSet, known.set or 0)
                    result += encode(Op.Decorate, known.id, Decoration.Binding, known.binding)
        if resource is not None and opcode == Op.Name:
            name = _plain_name(resource.name)
            result += encode(Op.Name, resource.id, *string_words(name if name not in names else resource.name))
        elif resource is None or words[start + 2] not in (Decoration.Binding, Decoration.DescriptorSet):
            result += words[start:end]
    return pack(result)


def _plain_name(name: str) -> str:
    """Returns the name of a variable as the source has it; a counter's is that of its buffer and ``_counter``."""
    if counter := _COUNTER.fullmatch(name):
        return f"{counter[1] or counter[2]}_counter"
    elements = _ELEMENTS.fullmatch(name)
    return elements[1] if elements else name
