"""The kernels that come with pumice: GLSL sources with their SPIR-V built beside them.

A shader's name is its path in this folder without the suffix: ``mul``, ``builtin/fill_unaligned``,
``examples/saxpy``. The header of its ``.comp`` file describes what it computes, its bindings, push constants and
groups. The SPIR-V is of version 1.3 (Vulkan 1.1), which every device that pumice supports takes.

Loading a shader needs no compiler; ``python -m pumice.shaders.build`` rebuilds them.

Imports: the ground files at the root; `build` also imports `spirv`.

Read: this file, `build`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ..status import InvalidArgumentError, NotFoundError, OutOfRangeError, shown

__all__ = [
    "BUILTIN_KERNELS",
    "COPY_UNALIGNED",
    "EMPTY",
    "FILL_UNALIGNED",
    "BuiltinKernel",
    "names",
    "path",
    "repeat_pattern",
    "source_path",
    "spirv",
]

_FOLDER: Final = Path(__file__).parent
_U32_MAX: Final = 0xFFFFFFFF


@cache
def names() -> tuple[str, ...]:
    """The names of all shaders, sorted."""
    return tuple(sorted(p.relative_to(_FOLDER).with_suffix("").as_posix() for p in _FOLDER.rglob("*.comp")))


def source_path(name: str) -> Path:
    """The GLSL source file of a shader.

    Raises:
        NotFoundError: no shader has this name; the message lists all names.
    """
    if name not in names():
        raise NotFoundError(f"there is no shader {shown(name)}; there are {', '.join(names())}")
    return _FOLDER / f"{name}.comp"


def path(name: str) -> Path:
    """The built SPIR-V file of a shader; `spirv` reads it.

    Raises:
        NotFoundError: no shader has this name; the message lists all names.
    """
    return source_path(name).with_suffix(".spv")


@cache
def spirv(name: str) -> bytes:
    """The SPIR-V module of a shader, little-endian; its entry point is ``main``.

    Raises:
        NotFoundError: no shader has this name, or it was not built.
    """
    file = path(name)
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"the shader {name!r} has no SPIR-V file {file}; build it with python -m pumice.shaders.build"
        ) from None


@dataclass(frozen=True, slots=True)
class BuiltinKernel:
    """A kernel that the HAL itself dispatches, and its interface.

    Attributes:
        name: the shader's name, for `spirv`.
        local_size: invocations of a workgroup in x, y, z.
        bindings: what the storage buffers of set 0 are, by binding number.
        push_fields: names of the push constants in order, each an unsigned 32-bit integer at offset
            4 times its index.
    """

    name: str
    local_size: tuple[int, int, int]
    bindings: tuple[str, ...]
    push_fields: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The kernel's SPIR-V file."""
        return path(self.name)

    @property
    def push_size(self) -> int:
        """Bytes of the push-constant range, which starts at offset 0."""
        return 4 * len(self.push_fields)

    def spirv(self) -> bytes:
        """The kernel's SPIR-V module."""
        return spirv(self.name)

    def pack_push(self, **values: int) -> bytes:
        """The push constants as bytes.

        Args:
            values: exactly one value for each of `push_fields`.

        Raises:
            InvalidArgumentError: a field is missing or unknown.
            OutOfRangeError: a value is not in 0 .. 2^32 - 1.
        """
        if values.keys() != set(self.push_fields):
            raise InvalidArgumentError(
                f"{self.name} expects the push constants ({', '.join(self.push_fields)}), got ({', '.join(values)})"
            )
        for field, value in values.items():
            if not 0 <= value <= _U32_MAX:
                raise OutOfRangeError(
                    f"push constant {field} of {self.name} is an unsigned 32-bit integer, got {value}; "
                    "split a longer range over several descriptors"
                )
        return struct.pack(f"<{len(self.push_fields)}I", *(values[field] for field in self.push_fields))

    def groups(self, offset: int, size: int, *, limit: int = 65535) -> int:
        """Workgroups in x that cover the words of a target byte range with one word an invocation.

        Args:
            offset: the range's first byte, relative to the descriptor's base.
            size: bytes.
            limit: the device's ``maxComputeWorkGroupCount[0]``; above it each invocation takes several words.

        Returns:
            At least 1 and at most ``min(limit, 65535)``, up to which the kernel's index arithmetic is exact.

        Raises:
            OutOfRangeError: the range is negative or ends at 2^32 or beyond.
        """
        if offset < 0 or size < 0 or offset + size > _U32_MAX:
            raise OutOfRangeError(
                f"{self.name} takes byte ranges that end below 2^32, got offset {offset} and size {size}; "
                "split a longer range over several descriptors"
            )
        words = (offset + size + 3) // 4 - offset // 4
        return max(1, min(-(-words // self.local_size[0]), limit, 65535))


def repeat_pattern(pattern: bytes) -> int:
    """The push constant ``pattern`` of `FILL_UNALIGNED` for a pattern of 1, 2 or 4 bytes in memory order.

    Raises:
        InvalidArgumentError: another length.
    """
    if len(pattern) not in (1, 2, 4):
        raise InvalidArgumentError(f"expected a fill pattern of 1, 2 or 4 bytes, got {len(pattern)} bytes")
    return int.from_bytes(pattern * (4 // len(pattern)), "little")


#: Fills bytes ``[offset, offset + size)`` of binding 0; `repeat_pattern` makes ``pattern``, whose first byte
#: goes to ``offset``. The descriptor's range must be a multiple of 4 bytes.
FILL_UNALIGNED: Final = BuiltinKernel(
    "builtin/fill_unaligned", (64, 1, 1), bindings=("target",), push_fields=("offset", "size", "pattern")
)

#: Copies ``size`` bytes from ``source_offset`` of binding 0 to ``target_offset`` of binding 1; both may be one
#: buffer where the ranges do not overlap. The descriptors' ranges must be multiples of 4 bytes.
COPY_UNALIGNED: Final = BuiltinKernel(
    "builtin/copy_unaligned",
    (64, 1, 1),
    bindings=("source", "target"),
    push_fields=("source_offset", "target_offset", "size"),
)

#: Does nothing; the baseline for timing a dispatch.
EMPTY: Final = BuiltinKernel("builtin/empty", (1, 1, 1), bindings=(), push_fields=())

BUILTIN_KERNELS: Final = (FILL_UNALIGNED, COPY_UNALIGNED, EMPTY)
