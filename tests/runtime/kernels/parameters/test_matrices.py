"""Matrices are given as rows in every language: of each shape, majority and layout, against the host's values."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator

import numpy as np
import pytest

import pumice
from pumice.spirv.sources import find
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

pytestmark = pytest.mark.vulkan

LANGUAGES = {
    "glsl": "GLSL by the first compiler",
    "hlsl": "HLSL by the first compiler",
    "hlsl by glslang": "HLSL by glslang",
    "slang": "Slang",
    "wgsl": "WGSL",
}
# Every kernel writes block after block, each matrix row by row, by the language's own indices.
ORDER = ("u", "s", "p")


def shapes(rows: int, block: str = "") -> list[tuple[int, int]]:
    return [(rows, columns) for columns in ((3, 4) if block == "p" else (2, 3, 4))]  # 128 bytes of push constants


def members(rows: int, language: str, major: str, block: str = "") -> str:
    word = {"glsl": f"layout({major}) mat{{c}}x{{r}}", "wgsl": "m{r}{c}: mat{c}x{r}<f32>,"}.get(
        language, f"{major} float{{r}}x{{c}}"
    )
    end = "" if language == "wgsl" else " m{r}{c};"
    return " ".join((word + end).format(r=r, c=c) for r, c in shapes(rows, block))


def stores(rows: int, blocks: tuple[str, ...], columns_first: bool) -> str:
    lines = []
    for block in blocks:
        for r, c in shapes(rows, block):
            for row, column in itertools.product(range(r), range(c)):
                index = f"[{column}][{row}]" if columns_first else f"[{row}][{column}]"
                lines.append(f"o[{len(lines)}] = {block}.m{r}{c}{index};")
    return " ".join(lines)


def source(language: str, rows: int, major: str, layout: str) -> tuple[str, tuple[str, ...]]:
    """Returns a kernel, and the blocks that it reads."""
    body, pushed = members(rows, language, major), members(rows, language, major, "p")
    if language == "glsl":
        return (
            f"""#version 450
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 1) in;
layout({layout}, binding = 0) uniform U {{ {body} }} u;
layout({layout}, binding = 1) readonly buffer S {{ {body} }} s;
layout(binding = 2) writeonly buffer O {{ float o[]; }};
layout(push_constant, {"std430" if layout == "std140" else layout}) uniform P {{ {pushed} }} p;
void main() {{ {stores(rows, ORDER, True)} }}
""",
            ORDER,
        )
    if language == "wgsl":
        return (
            f"""struct B {{ {body} }}
@group(0) @binding(0) var<uniform> u: B;
@group(0) @binding(1) var<storage, read> s: B;
@group(0) @binding(2) var<storage, read_write> o: array<f32>;
@compute @workgroup_size(1) fn main() {{ {stores(rows, ORDER[:2], True)} }}
""",
            ORDER[:2],
        )
    return (
        f"""struct B {{ {body} }};
struct Pushed {{ {pushed} }};
[[vk::push_constant]] ConstantBuffer<Pushed> p;
[[vk::binding(0)]] ConstantBuffer<B> u;
[[vk::binding(1)]] StructuredBuffer<B> items;
[[vk::binding(2)]] RWStructuredBuffer<float> o;
[shader("compute")] [numthreads(1, 1, 1)]
void main() {{ B s = items[0]; {stores(rows, ORDER, False)} }}
""",
        ORDER,
    )


def values(rows: int, block: str) -> dict[str, np.ndarray]:
    start = 100 * ORDER.index(block)
    return {
        f"m{r}{c}": np.arange(r * c, dtype=np.float32).reshape(r, c) + start + 20 * c for r, c in shapes(rows, block)
    }


@pytest.fixture
def device(driver: object) -> Iterator[pumice.Device]:
    """One device: how arrays are copied does not matter to what compilers make."""
    del driver
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    language = name.partition(" ")[0]
    if name == "hlsl by glslang":
        path = shutil.which("glslangValidator")
        if path is None:
            pytest.skip("no glslangValidator")
        monkeypatch.setenv("PUMICE_HLSLC", path)
    try:
        find.find_compiler(Language(language))
    except UnavailableError as error:
        pytest.skip(f"no compiler: {error.message[:80]}")
    return language


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize(
    ("compiler", "major", "layout"),
    [
        *((name, major, "") for name in ("hlsl", "slang") for major in ("row_major", "column_major", "")),
        *(("glsl", major, layout) for major in ("row_major", "column_major") for layout in ("std140", "scalar")),
        ("hlsl by glslang", "column_major", ""),
        ("hlsl by glslang", "", ""),
        ("wgsl", "", ""),
    ],
    indirect=["compiler"],
)
def test_rows_are_rows(device: pumice.Device, compiler: str, rows: int, major: str, layout: str) -> None:
    """Checks uniform, storage and push-constant blocks."""
    text, blocks = source(compiler, rows, major, layout)
    kernel = device.load_kernel(text, language=compiler, entry_point="main" if compiler in ("hlsl", "slang") else None)
    given = {block: values(rows, block) for block in blocks}
    storage = [given["s"]] if compiler in ("hlsl", "slang") else given["s"]
    expected = np.concatenate([matrix.ravel() for block in blocks for matrix in given[block].values()])
    push = given.get("p")
    got = kernel(given["u"], storage, pumice.empty(len(expected)), push=push, groups=1)
    np.testing.assert_array_equal(got, expected)
