"""Names for blocks of stripped modules, checked against the module's layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ...status import InvalidArgumentError, NotFoundError, shown
from .block_text import DeclaredBlock, DeclaredMember, DeclaredType, glsl_type, parse_blocks, parse_members
from .reflection_types import Binding, BlockMember, EntryPoint

MemberNames: TypeAlias = "str | Sequence[str] | Mapping[str, MemberNames | None]"
BlockKey: TypeAlias = int | tuple[int, int] | str
Layouts: TypeAlias = str | Mapping[BlockKey, MemberNames]

PUSH: Final = "push"
"""The key of the push constants."""


def with_names(entry: EntryPoint, layouts: Layouts) -> EntryPoint:
    """Returns an entry point whose blocks have the names in ``layouts``.

    Args:
        layouts: the declarations of the blocks in GLSL, as text; or for each block, by binding, (set, binding), name,
            or ``"push"`` for the push constants: its members as text (``"uint n; float scale[4];"``), a list of names,
            or a mapping of names to types, to mappings for structures, or to ``None``.

    Raises:
        InvalidArgumentError: the text cannot be read, or the members are not as the module has them.
        NotFoundError: there is no such block.
    """
    if isinstance(layouts, str):
        for block in parse_blocks(layouts):
            entry = _named(entry, block)
        return entry
    if not isinstance(layouts, Mapping):
        raise InvalidArgumentError(f"layouts is GLSL's text or a mapping of blocks to members, got {shown(layouts)}")
    for key, members in layouts.items():
        entry = _named(entry, DeclaredBlock(_place(entry, key), "", "", _declared(members, f"layouts[{key!r}]")))
    return entry


def _place(entry: EntryPoint, key: object) -> tuple[int, int] | None:
    if key == PUSH:
        return None
    if isinstance(key, str):
        for binding in entry.bindings:
            if key in (binding.name, binding.block):
                return binding.set, binding.binding
        raise NotFoundError(f"layouts: {entry.name} has no block {shown(key)}; {_known(entry)}")
    if isinstance(key, tuple) and len(key) == 2 and all(type(n) is int for n in key):
        return key[0], key[1]
    if type(key) is int:
        return 0, key
    raise InvalidArgumentError(f"layouts: a block is a binding, (set, binding), a name or 'push', got {shown(key)}")


def _known(entry: EntryPoint) -> str:
    known = [f"({b.set}, {b.binding})" + (f" {b.name}" if b.name else "") for b in entry.bindings if b.members]
    known += [PUSH] if entry.push_constants else []
    return f"it has: {', '.join(known) or 'none'}"


def _declared(members: object, where: str) -> tuple[DeclaredMember, ...]:
    if isinstance(members, str):
        return parse_members(members)
    if isinstance(members, Mapping):
        return tuple(
            DeclaredMember(_name(name, where), _type(of, f"{where}[{name!r}]")) for name, of in members.items()
        )
    if isinstance(members, Sequence):
        return tuple(DeclaredMember(_name(name, where)) for name in members)
    raise InvalidArgumentError(f"{where}: members are text, a list of names or a mapping, got {shown(members)}")


def _name(name: object, where: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"{where}: a member's name is text, got {shown(name)}")
    return name


def _type(of: object, where: str) -> DeclaredType | None:
    if of is None:
        return None
    scalar = glsl_type(of) if isinstance(of, str) else None
    if scalar is not None:
        return scalar
    if isinstance(of, str) and not set(of) & set(";{"):
        raise InvalidArgumentError(f"{where}: {shown(of)} is no type of GLSL's; None takes any")
    return DeclaredType("struct", members=_declared(of, where))


def _named(entry: EntryPoint, block: DeclaredBlock) -> EntryPoint:
    if block.binding is None:
        if entry.push_constants is None:
            raise NotFoundError(f"layouts: {entry.name} has no push constants; {_known(entry)}")
        members = _renamed(entry.push_constants.members, block.members, "layouts: push constants")
        return dataclasses.replace(entry, push_constants=dataclasses.replace(entry.push_constants, members=members))
    bindings = list(entry.bindings)
    for index, binding in enumerate(bindings):
        if (binding.set, binding.binding) == block.binding and binding.members:
            bindings[index] = _named_binding(binding, block)
            return dataclasses.replace(entry, bindings=tuple(bindings))
    raise NotFoundError(f"layouts: {entry.name} has no block at {block.binding}; {_known(entry)}")


def _named_binding(binding: Binding, block: DeclaredBlock) -> Binding:
    where = f"layouts: set {binding.set}, binding {binding.binding}"
    if binding.aliases:
        raise InvalidArgumentError(f"{where} has {len(binding.aliases)} blocks, which keep the names that they have")
    members = _renamed(binding.members, block.members, where)
    element = binding.element
    if element is not None and element.struct:
        element = dataclasses.replace(element, struct=members[-1].members)
    return dataclasses.replace(
        binding,
        name=block.variable or block.structure or binding.name,
        block=block.structure or binding.block,
        members=members,
        element=element,
    )


def _renamed(members: Sequence[BlockMember], declared: Sequence[DeclaredMember], where: str) -> tuple[BlockMember, ...]:
    if len(members) != len(declared):
        has = ", ".join(_shape(member) for member in members[:8]) + (", …" if len(members) > 8 else "")
        raise InvalidArgumentError(f"{where}: {len(declared)} member(s) for the module's {len(members)} ({has})")
    renamed: list[BlockMember] = []
    for index, (member, wanted) in enumerate(zip(members, declared, strict=True)):
        at = f"{where}: member {index} ({wanted.name}, offset {member.offset})"
        inner = member.members
        if wanted.type is not None:
            if not _fits(member, wanted.type):
                raise InvalidArgumentError(f"{at} is declared {wanted.type.text}, the module has {_shape(member)}")
            if wanted.type.members is not None:
                inner = _renamed(inner, wanted.type.members, at)
        lengths = wanted.lengths
        if lengths is not None and (
            len(lengths) != len(member.array_shape)
            or any(a and b and a != b for a, b in zip(lengths, member.array_shape, strict=True))
        ):
            raise InvalidArgumentError(f"{at} has lengths {list(lengths)} there, the module has {_shape(member)}")
        renamed.append(dataclasses.replace(member, name=wanted.name, members=inner))
    if len({member.name for member in renamed}) != len(renamed):
        raise InvalidArgumentError(f"{where}: two members have one name")
    return tuple(renamed)


def _fits(member: BlockMember, of: DeclaredType) -> bool:
    if of.members is not None:
        return member.scalar is None
    if of.scalar is None:  # a pointer
        return bool(member.pointee) or (member.scalar is not None and member.scalar.bits == 64)
    mine = member.scalar, member.components, member.columns
    return mine == (of.scalar, of.components, of.columns) and not member.pointee


def _shape(member: BlockMember) -> str:
    if member.scalar is None:
        kind = f"a structure of {len(member.members)}"
    elif member.pointee:
        kind = f"a pointer to {member.pointee}"
    else:
        kind = f"{member.scalar.encoding or member.scalar.kind}{member.scalar.bits}"
        if member.columns > 1:
            kind = f"{member.columns} columns of {member.components} {kind}"
        elif member.components > 1:
            kind = f"{member.components} {kind}"
    return kind + "".join(f"[{n or ''}]" for n in member.array_shape)
