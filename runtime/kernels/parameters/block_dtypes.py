"""Dtypes of a kernel's blocks by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....hal_vulkan import ShaderModuleReflection
from ....spirv.reflection.block_dtype import block_dtype, element_dtype, only_array
from ....status import InvalidArgumentError, NotFoundError, shown
from .names import Names
from .parameter import Parameter


def dtype_of_block(
    name: str,
    length: int | None,
    names: Names,
    parameters: Sequence[Parameter],
    reflection: ShaderModuleReflection,
    kernel: str,
) -> np.dtype[np.generic]:
    """Returns the dtype of a binding's block, or of a block that a pointer points to; see ``Kernel.dtype``."""
    blocks = names.blocks(name) or tuple(b for b in reflection.pointees if b.name == name)
    block = next((b for b in blocks if name in (b.name, b.structure)), None)
    if block is None or not block.members:
        pointed = ", ".join(b.name for b in reflection.pointees)
        shown_blocks = [b for parameter in parameters for b in parameter.binding.blocks if b.members]
        known = [word for one in shown_blocks for word in (one.name, one.structure) if word]
        raise NotFoundError(
            f"{kernel} has no block {shown(name)}; it has: {', '.join(dict.fromkeys(known)) or 'none'}"
            + (f"; and pointers to: {pointed}" if pointed else "")
        )
    if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 0):
        raise InvalidArgumentError(f"length is a number of elements, got {shown(length)}")
    if only_array(block.members) is not None and length is None:
        return element_dtype(block)
    return block_dtype(block, length)
