"""The subgroup size that a compiled kernel relies on.

Compilers that know a target's subgroup size write kernels for it: a reduction over a subgroup covers that many
invocations, and shuffles reach that far. On a device with smaller subgroups such a kernel silently computes wrong
results (SPIR-V specification, Group and Non-Uniform Instructions: a shuffle from an invocation that does not exist is
undefined).
"""

from __future__ import annotations

from typing import Final

from .grammar import ENUMERATIONS, BuiltIn, Decoration, GroupOperation, Op
from .words import read_binary

_SHUFFLES: Final = (
    Op.GroupNonUniformShuffle,
    Op.GroupNonUniformShuffleXor,
    Op.GroupNonUniformShuffleUp,
    Op.GroupNonUniformShuffleDown,
)
_ARITHMETIC: Final = range(Op.GroupNonUniformIAdd, Op.GroupNonUniformLogicalXor + 1)
_SUBGROUP_BUILTINS: Final = (BuiltIn.SubgroupSize, BuiltIn.NumSubgroups, BuiltIn.SubgroupId)
_MIN_OF_TARGETS: Final = 16
"""The smallest subgroup size of the targets that IREE's compilers know by name (KnownTargets.cpp)."""

_CAPABILITIES: Final = frozenset(
    number
    for number, name in ENUMERATIONS["Capability"].names.items()
    if name.startswith(("GroupNonUniform", "CooperativeMatrix"))
)


def uses_subgroups(code: bytes) -> bool:
    """Returns whether a module declares operations of subgroups."""
    binary = read_binary(code)
    return any(opcode == Op.Capability and binary.words[start + 1] in _CAPABILITIES for opcode, start, _ in binary)


def least_subgroup_size(code: bytes, invocations: int) -> int:
    """Returns the smallest subgroup size with which a compiled kernel is correct; 1 if it uses no subgroups.

    A shuffle by a constant shows its distance, and a clustered operation shows its size. A reduction over the whole
    subgroup shows only that the kernel was written for a device that compilers know, unless it reads the device's size.
    ``invocations`` is the workgroup's size; the code must be valid.
    """
    binary = read_binary(code)
    constants: dict[int, int] = {}
    reads_size = False
    least = 1
    for opcode, start, end in binary:
        operands = binary.words[start + 1 : end]
        if opcode == Op.Constant and len(operands) == 3:
            constants[operands[1]] = operands[2]
        elif opcode == Op.Decorate and operands[1] == Decoration.BuiltIn:
            reads_size = reads_size or operands[2] in _SUBGROUP_BUILTINS
        elif opcode in _SHUFFLES:
            least = max(least, constants.get(operands[4], 0) + 1)
        elif opcode in _ARITHMETIC:
            if operands[3] == GroupOperation.ClusteredReduce and len(operands) == 6:
                least = max(least, constants.get(operands[5], 1))
            elif operands[3] == GroupOperation.Reduce and not reads_size:
                least = max(least, min(invocations, _MIN_OF_TARGETS))
    return 1 << (least - 1).bit_length()
