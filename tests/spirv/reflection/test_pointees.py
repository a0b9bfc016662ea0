"""What pointers point to, by reflection, against the disassembler's decorations."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pumice.spirv.reflection.block_dtype import block_dtype, difference, element_dtype
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = pytest.mark.skipif(shutil.which("spirv-dis") is None, reason="needs spirv-dis (SPIRV-Tools)")

# Announced before they are defined, in arrays, and in structures of each other.
SOURCE = """#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
layout(buffer_reference) buffer Node;
layout(buffer_reference) buffer Leaf;
layout(buffer_reference, std430) buffer Node { vec3 place; float v; Node next; Leaf leaves[3]; mat3 turn; };
layout(buffer_reference, scalar) buffer Leaf { vec3 place; Node up; uint count; vec3 rest[]; };
layout(binding = 0) buffer Table { Node nodes[]; } table;
layout(push_constant) uniform Push { Node heads[2]; Leaf leaf; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    leaf.rest[i] = heads[1].place + table.nodes[i].leaves[2].up.next.turn[0];
}
"""


def test_pointees_lie_as_they_are_decorated(tmp_path: Path) -> None:
    code = compile_glsl(SOURCE, target_env="vulkan1.2")
    path = tmp_path / "shader.spv"
    path.write_bytes(code)
    text = subprocess.run(["spirv-dis", "--no-color", path], capture_output=True, text=True, check=True).stdout
    reflection = reflect(code)
    assert {block.name for block in reflection.pointees} == {"Node", "Leaf"}
    for block in reflection.pointees:
        offsets = re.findall(rf"OpMemberDecorate %{block.name} \d+ Offset (\d+)", text)
        assert [member.offset for member in block.members] == list(map(int, offsets))
        names = re.findall(rf'OpMemberName %{block.name} \d+ "(\w+)"', text)
        assert [member.name for member in block.members] == names
    node, leaf = sorted(reflection.pointees, key=lambda block: block.name, reverse=True)
    assert [m.pointee for m in node.members] == ["", "", "Node", "Leaf", ""]
    assert node.members[3].array_shape == (3,)
    assert [m.pointee for m in leaf.members] == ["", "Node", "", ""]
    push = reflection.entry_point().push_constants
    assert push is not None
    assert [(m.name, m.pointee, m.array_shape) for m in push.members] == [("heads", "Node", (2,)), ("leaf", "Leaf", ())]


def test_dtypes_have_the_strides_of_the_decorations() -> None:
    reflection = reflect(compile_glsl(SOURCE, target_env="vulkan1.2"))
    node, leaf = sorted(reflection.pointees, key=lambda block: block.name, reverse=True)
    dtype = block_dtype(node)
    assert dtype.fields is not None
    # The columns of a mat3 lie 16 bytes apart, as vec3 do.
    assert dtype["turn"].subdtype == (np.dtype({"names": ["value"], "formats": [("f4", 3)], "itemsize": 16}), (3,))
    assert dtype["leaves"].subdtype == (np.dtype(np.uint64), (3,))
    assert block_dtype(leaf, 5)["rest"].subdtype == (np.dtype(np.float32), (5, 3))
    (table,) = reflection.entry_point().bindings
    assert element_dtype(table.blocks[0]) == np.uint64


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([("a", "f4"), ("b", "u4", 3)], ""),
        ([("x", "f4"), ("y", "u4"), ("z", "u4"), ("w", "u4")], ""),
        ([("x", "f4"), ("bytes", "u1", 12)], ""),
        ([("x", "f4"), ("rest", "i4", 3)], "byte 4 is int32, declared uint32"),
        ([("x", "f4"), ("rest", "u8"), ("end", "u4")], "byte 4 is uint64, declared uint32"),
        ([("x", "f4"), ("rest", "u4", 2)], "uint32 at byte 12 is missing"),
        ([("b", "u4", 3), ("a", "f4")], "byte 0 is uint32, declared float32"),
    ],
)
def test_difference(given: list[tuple[str, str]], words: str) -> None:
    assert difference(np.dtype([("a", "f4"), ("b", "u4", 3)]), np.dtype(given)) == words
