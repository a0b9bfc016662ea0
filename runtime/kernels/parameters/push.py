"""Push constants from Python values, in the layout that the shader declares."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ....hal_vulkan import BlockMember, PushConstantBlock
from ....spirv.reflection.block_dtype import member_names
from ....status import InvalidArgumentError, shown
from ...arrays.array import DeviceArray
from .block import describe, has_pointer, pack_members
from .number_block import NumberBlock
from .parameter import KernelArgument

PushValue: TypeAlias = (
    "int | float | bool | Sequence[PushValue] | Mapping[str, PushValue] | np.ndarray | np.generic | DeviceArray"
)
"""A push constant: a number, a vector or an array of numbers, a structure by the names of its members, or an array of
the device for a pointer.
"""
Push: TypeAlias = bytes | bytearray | Sequence[PushValue] | Mapping[str, PushValue] | None
"""Push constants: the bytes of the whole block, values in order, or values by name."""
Named: TypeAlias = "dict[str, KernelArgument | PushValue]"
"""Arguments and push constants by name."""
Defaults: TypeAlias = Mapping[str, PushValue] | int | None


class PushConstants:
    """The push constants of a kernel."""

    def __init__(
        self,
        block: PushConstantBlock | None,
        kernel: str,
        check: Callable[[Iterable[str]], None],
        defaults: Defaults = None,
    ) -> None:
        """Prepares the shader's declaration ``block``, ``None`` for none.

        ``kernel`` is the kernel's name, for messages.

        ``check`` raises for names that are not those of push constants. ``defaults`` are the values of omitted members,
        or 0 for zeros in all of them except pointers.
        """
        self._block = block
        self._defaults = _checked_defaults(block, defaults, kernel)
        self._kernel = kernel
        self._check = check
        self._numbers: NumberBlock | None = None
        if block is not None:
            with contextlib.suppress(InvalidArgumentError):  # a name that also names a binding: the call says so
                check(member_names(block.members))
                self._numbers = NumberBlock(block.members, block.size)

    def pack(self, push: Push, fields: Mapping[str, object]) -> bytes:
        """Returns the bytes of the block, from bytes, a value for each member in order, or values by member name.

        ``fields`` are further values by name.
        """
        if self._numbers is not None:
            plain = fields if push is None else push if isinstance(push, Mapping) and not fields else None
            data = None if plain is None else self._numbers.pack(plain)
            if data is not None:
                return bytes(data)
        elif self._block is None and push is None and not fields:
            return b""
        self._check(fields)
        return pack_push(self._block, push, fields, self._kernel, self._defaults)

    @cached_property
    def members(self) -> Mapping[str, BlockMember]:
        """The members of the block by name."""
        return member_names(self._block.members) if self._block is not None else {}

    def with_value(self, push: bytes, name: str, value: object) -> bytes:
        """Returns the bytes of the block with another value of one member."""
        assert self._block is not None
        if has_pointer(self.members[name]):
            raise InvalidArgumentError(
                f"{self._kernel}: push constant {name} has an address, which cannot be changed: record again"
            )
        data = bytearray(push)
        if self._numbers is None or not self._numbers.write(data, name, value):
            pack_members(
                data, 0, self._block.members, {name: value}, self._kernel, noun=self._block.noun, missing="any"
            )
        return bytes(data)


def pack_push(
    block: PushConstantBlock | None,
    push: Push,
    fields: Mapping[str, object],
    kernel: str,
    defaults: Defaults = None,
) -> bytes:
    """Returns the bytes of a push-constant block; see ``PushConstants``."""
    if block is None:
        if fields or (push is not None and len(push)):
            came = ", ".join(fields) or f"{len(push or ())} value(s)"
            raise InvalidArgumentError(f"{kernel} has no push constants, got {came}")
        return b""
    if isinstance(push, (bytes, bytearray)):
        if fields:
            raise InvalidArgumentError(f"{kernel}: give {block.noun}s as push= bytes or by name, not both")
        if len(push) != block.size:
            raise InvalidArgumentError(
                f"{kernel} takes {block.size} bytes of {block.noun}s ({describe(block.members)}), got {len(push)}"
            )
        return bytes(push)
    values: dict[str, object] = {}
    if isinstance(push, Mapping):
        values.update(push)
    elif push is not None:
        if isinstance(push, (str, int, float)) or not isinstance(push, (Sequence, np.ndarray)):
            raise InvalidArgumentError(
                f"{kernel}: push= takes bytes, a sequence of values or a mapping, got {type(push).__name__}"
            )
        names = member_names(block.members)
        if len(push) != len(names):
            raise InvalidArgumentError(
                f"{kernel} has {len(names)} {block.noun}(s) ({describe(block.members)}), got {len(push)} value(s)"
            )
        values.update(zip(names, push, strict=True))
    twice = values.keys() & fields.keys()
    if twice:
        raise InvalidArgumentError(f"{kernel}: {block.noun}(s) {', '.join(sorted(twice))} given twice")
    values.update(fields)
    if isinstance(defaults, Mapping):
        values = _merged(defaults, values)
    data = bytearray(block.size)
    pack_members(
        data, 0, block.members, values, kernel, noun=block.noun, missing="zero" if defaults == 0 else "refused"
    )
    return bytes(data)


def _merged(defaults: Mapping[str, object], values: Mapping[str, object]) -> dict[str, object]:
    """Merges values into defaults, structures member by member."""
    merged = {**defaults, **values}
    for name in defaults.keys() & values.keys():
        default, value = defaults[name], values[name]
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            merged[name] = _merged(default, value)
    return merged


def _checked_defaults(block: PushConstantBlock | None, defaults: Defaults, kernel: str) -> Defaults:
    if defaults is None:
        return None
    zero = type(defaults) is int and defaults == 0
    if not (zero or isinstance(defaults, Mapping)):
        raise InvalidArgumentError(
            f"push_defaults is a mapping of push constants' names to values, or 0 for zeros, got {shown(defaults)}"
        )
    if block is None:
        raise InvalidArgumentError(f"{kernel} has no push constants for push_defaults to give")
    if isinstance(defaults, Mapping):
        where = f"{kernel}: push_defaults"
        pack_members(bytearray(block.size), 0, block.members, defaults, where, noun=block.noun, missing="any")
    return defaults
