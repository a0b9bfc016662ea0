"""Values of uniforms outside blocks, where OpenGL's shaders give them: ``uniform float rate = 0.1;``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ....hal_vulkan import EntryPoint
from ....spirv.reflection.block_dtype import member_names
from ....spirv.sources.opengl import initial_values
from .block import unpack_members
from .push import Defaults, PushValue


def with_initial_values(defaults: Defaults, entry: EntryPoint, source: str) -> Defaults:
    """Returns defaults with the values that a source gives to uniforms where a caller gives none.

    Args:
        defaults: the caller's; 0 are zeros for all that the source gives no values.
        entry: the entry point, with uniforms outside blocks.
        source: the text of the source, ``""`` for none.
    """
    block = entry.constants
    assert block is not None
    initial: dict[str, PushValue]
    initial = {name: value for name, value in initial_values(source).items() if name in member_names(block.members)}
    if defaults == 0:
        zeros = cast("dict[str, PushValue]", unpack_members(bytes(block.size), 0, block.members))
        return {**zeros, **initial}
    return {**initial, **defaults} if isinstance(defaults, Mapping) else initial or None
