"""Names for stripped modules: the reflection of a module with names is had again from its declarations."""

from __future__ import annotations

import pytest
from support.devices.stripping import without_names

from pumice.spirv.reflection.block_names import with_names
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.reflection.reflection_types import EntryPoint
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import PumiceError

EXTENSIONS = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_buffer_reference : require
"""
DECLARATIONS = """
layout(local_size_x = 64) in;  // a comment
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430) buffer Node { float v; Node next; };
struct Inner { vec3 place; ivec2 cell[2]; mat2x3 turn; };
struct Outer { Inner inner[3]; /* two
    lines */ float16_t half_a, half_b; f16vec2 pair; };
layout(std140, set = 1, binding = 2) uniform Settings { uint n; bool flag; Outer outer; dvec2 wide; } settings;
layout(std430, binding = 0) readonly restrict buffer Items { Outer items[]; };
layout(std430, binding = 4) buffer Plain { uint head; float rest[]; } plain;
layout(push_constant) uniform Push { uint ne; uint ne00, ne01; float scale[2][3]; u16vec2 small; Node first; };
"""
MAIN = """
void main() {
    plain.rest[0] = settings.outer.inner[1].place.x + items[1].inner[2].turn[1].y + scale[1][2] + first.next.v;
}
"""


@pytest.fixture(scope="module")
def named() -> EntryPoint:
    return reflect(compile_glsl(EXTENSIONS + DECLARATIONS + MAIN, target_env="vulkan1.2")).entry_point()


@pytest.fixture(scope="module")
def stripped() -> EntryPoint:
    code = without_names(compile_glsl(EXTENSIONS + DECLARATIONS + MAIN, target_env="vulkan1.2"))
    found = reflect(code).entry_point()
    assert not any(member.name for binding in found.bindings for member in binding.members)
    return found


def without_pointees(entry: EntryPoint) -> str:
    """What points to what has names of its own."""
    return repr(entry).replace("'Node'", "").replace(repr(entry.push_constants.members[-1].pointee), "")  # type: ignore[union-attr]


def test_declarations_give_a_stripped_module_its_names(named: EntryPoint, stripped: EntryPoint) -> None:
    assert without_pointees(with_names(stripped, DECLARATIONS)) == without_pointees(named)


def test_mappings_give_names(named: EntryPoint, stripped: EntryPoint) -> None:
    inner = {"place": "vec3", "cell": "ivec2", "turn": "mat2x3"}
    outer = {"inner": inner, "half_a": "float16_t", "half_b": None, "pair": ["x"]}
    found = with_names(
        stripped,
        {
            "push": ["ne", "ne00", "ne01", "scale", "small", "first"],
            (
                1,
                2,
            ): "struct Inner { vec3 place; ivec2 cell[2]; mat2x3 turn; }; struct Outer { Inner inner[3]; float16_t "
            "half_a, half_b; f16vec2 pair; }; uint n; bool flag; Outer outer; dvec2 wide;",
            0: {"items": {**outer, "pair": "f16vec2"}},
            4: "uint head; float rest[];",
        },
    )
    assert [b.members for b in found.bindings] == [b.members for b in named.bindings]
    assert [m.name for m in found.push_constants.members] == [m.name for m in named.push_constants.members]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("layouts", "message"),
    [
        (
            {"push": ["a", "b"]},
            r"push constants: 2 member\(s\) for the module's 6 \(uint32, uint32, uint32, float32\[2\]",
        ),
        (
            {4: "float head; float rest[];"},
            r"member 0 \(head, offset 0\) is declared float, the module has uint32",
        ),
        ({4: "uint head; float rest[3][2];"}, r"has lengths \[3, 2\] there, the module has float32\[\]"),
        ({4: "uint head; vec2 rest[];"}, r"declared vec2, the module has float32\[\]"),
        ({4: ["a", "a"]}, "two members have one name"),
        ({7: ["a"]}, r"no block at \(0, 7\); it has: \(0, 0\), \(0, 4\), \(1, 2\), push"),
        ({"Items": ["a"]}, "no block 'Items'"),
        ({1.5: ["a"]}, "a block is a binding"),
        ({4: 5}, "members are text, a list of names or a mapping"),
        ({4: {"head": "uint", "rest": "flaot"}}, "'flaot' is no type of GLSL's"),
        (5, "layouts is GLSL's text or a mapping"),
        ("layout(binding = 4) buffer B { uint head; flaot rest[]; };", r"1:43: .*'flaot' is no type of GLSL's"),
        ("layout(binding = 4) buffer B { uint head; float rest[] };", r"1:55: expected ;; got '}'|expected ;"),
        ("layout(binding = N) buffer B { uint head; };", "expected the number of the binding, got 'N'"),
        ("uniform B { uint head; };", r"expected layout\(binding = …\)"),
        ("layout(binding = 4) buffer B { uint head", "expected ;; got the end"),
        ("float f() { return 1.0; }", "a block is {|expected"),
        ("layout(binding = 4) buffer B { uint a; } $", r"expected a declaration, got '\$'"),
    ],
)
def test_wrong_layouts(stripped: EntryPoint, layouts: object, message: str) -> None:
    with pytest.raises(PumiceError, match=message):
        with_names(stripped, layouts)  # type: ignore[arg-type]
