"""Wrong accesses are reported and skipped, and nothing else is: modules run with their report as one more argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.devices.features import require_features
from support.devices.shader_tools import needs_compiler

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument.checks import SanitizeOptions
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.instrument.reports import Instrumented, Report, ReportKind
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import PumiceError

pytestmark = [pytest.mark.vulkan, needs_compiler]

LANES = 64
HEAD = f"""
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = {LANES}) in;
uint g = gl_LocalInvocationIndex;
"""
BUFFERS = """
layout(set = 0, binding = 0) buffer In { uint at; uint zero; uint x[]; } a;
layout(set = 0, binding = 1) buffer Out { uint r[]; };
"""
BOUNDS, ADDRESS, UNINITIALISED = ReportKind.OUT_OF_BOUNDS, ReportKind.WILD_ADDRESS, ReportKind.UNINITIALISED


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel that is right with ``at`` = ``right`` and wrong with ``at`` = ``wrong``.

    Attributes:
        body: of main, where the wrong line has a comment ``here``.
        reported: the rule, the index and the limit of the report.
        declared: before main.
        written: what ``r[5]`` holds where the access was skipped, ``None`` if it is of no concern.
    """

    body: str
    wrong: int
    reported: tuple[str, int, int]
    declared: str = BUFFERS
    right: int = 0
    kind: ReportKind = BOUNDS
    written: int | None = None


NEGATIVE = 0xFFFFFFFFFFFFFFFF
CASES = {
    "load of a run-time array": Case("r[g] = a.x[a.at] + 1; // here", 62, ("index", 62, 62), written=1),
    "store to a run-time array": Case("r[g] = 7;\nr[a.at + g * a.zero] = 9; // here", 64, ("index", 64, 64), written=7),
    "signed index": Case("int i = int(a.zero) - int(a.at);\nr[g] = a.x[i]; // here", 3, ("index", NEGATIVE - 2, 62)),
    "index of 16 bits": Case(
        "uint16_t i = uint16_t(a.at);\nr[g] = a.x[uint(i)]; // here", 65535, ("index", 65535, 62), written=0
    ),
    "atomic": Case("r[g] = 1 + atomicAdd(a.x[a.at + 61], 1); // here", 4, ("index", 65, 62), written=1),
    "array in a block": Case(
        "r[g] = b.y[a.at]; // here",
        4,
        ("index", 4, 4),
        declared=BUFFERS.replace("uint x[];", "uint y[4]; uint z; uint x[];").replace("} a;", "} a;\n#define b a\n"),
        written=0,
    ),
    "array of arrays": Case(
        "r[g] = a.x[a.zero].y[a.at]; // here",
        2,
        ("index", 2, 2),
        declared="struct S { uint y[2]; };\n" + BUFFERS.replace("uint x[]", "S x[]"),
        written=0,
    ),
    "component of a vector": Case(
        "r[g] = a.x[a.zero][a.at]; // here",
        4,
        ("index", 4, 4),
        declared=BUFFERS.replace("uint zero; uint x[]", "uint zero; uint p0; uint p1; uvec4 x[]"),
        written=0,
    ),
    "component of a value": Case("uvec3 v = uvec3(g, a.at, 5);\nr[g] = v[a.at]; // here", 3, ("index", 3, 3)),
    "column of a matrix": Case(
        "r[g] = uint(a.x[a.zero][a.at].y); // here",
        2,
        ("index", 2, 2),
        declared=BUFFERS.replace("uint zero; uint x[]", "uint zero; uint p[6]; mat2x4 x[]"),
        written=0,
    ),
    "function array": Case(
        "uint t[8];\nfor (int i = 0; i < 8; i++) t[i] = g;\nr[g] = t[a.at]; // here", 8, ("index", 8, 8), written=0
    ),
    "store to a function array": Case(
        "uint t[8];\nfor (int i = 0; i < 8; i++) t[i] = g;\nt[a.at] = 3; // here\nr[g] = t[4];",
        99,
        ("index", 99, 8),
        written=5,
    ),
    "argument of a function": Case(
        "uint t[4] = uint[4](1, 2, 3, 4);\nr[g] = f(t, a.at);",
        4,
        ("index", 4, 4),
        declared=BUFFERS + "uint f(inout uint t[4], uint i) { return t[i]; // here\n}",
        written=0,
    ),
    "push constants": Case(
        "r[g] = p.t[a.at]; // here",
        4,
        ("index", 4, 4),
        declared=BUFFERS + "layout(push_constant) uniform P { uint t[4]; } p;",
        written=0,
    ),
    "workgroup array": Case(
        "s[g] = 1;\nbarrier();\nr[g] = s[a.at]; // here",
        70,
        ("index", 70, 64),
        declared=BUFFERS + "shared uint s[64];",
        written=0,
    ),
    "workgroup memory that nobody wrote": Case(
        "if (g != a.at) s[g] = g;\nbarrier();\nr[g] = s[g]; // here",
        5,
        ("read", 5, 64),
        declared=BUFFERS + "shared uint s[64];",
        right=64,
        kind=UNINITIALISED,
    ),
    "workgroup vector that nobody wrote": Case(
        "if (g != a.at) s[g].y = g;\nbarrier();\nuvec3 v = s[g]; // here\nr[g] = v.y;",
        5,
        ("read", 15, 192),
        declared=BUFFERS + "shared uvec3 s[64];",
        right=0xFFFF,
        kind=UNINITIALISED,
    ),
    "atomic of workgroup memory that nobody wrote": Case(
        "if (g == a.at) s = 0;\nbarrier();\natomicAdd(s, 1); // here\nbarrier();\nr[g] = s;",
        64,
        ("read", 0, 1),
        declared=BUFFERS + "shared uint s;",
        kind=UNINITIALISED,
    ),
    "null address": Case(
        "P p = P(uvec2(a.at, 0));\nif (a.at != 1) r[g] = p.v[g] + 1; // here",
        0,
        ("null", None, 0),
        declared=BUFFERS + "layout(buffer_reference, buffer_reference_align = 4) buffer P { uint v[]; };",
        right=1,
        kind=ADDRESS,
        written=1,
    ),
    "store to a null address": Case(
        "P p = P(uvec2(a.at, 0));\nif (a.at != 1) { p.v[3].y = 1.0; // here\n} r[g] = 1;",
        0,
        ("null", None, 0),
        declared=BUFFERS + "layout(buffer_reference, buffer_reference_align = 16) buffer P { vec4 v[]; };",
        right=1,
        kind=ADDRESS,
        written=1,
    ),
    "misaligned address": Case(
        "P p = P(uvec2(a.at, 0));\nif (a.at != 1) r[g] = p.v + 1; // here",
        1026,
        ("misaligned", 1026, 16),
        declared=BUFFERS + "layout(buffer_reference, buffer_reference_align = 16) buffer P { uint v; };",
        right=1,
        kind=ADDRESS,
        written=1,
    ),
    "in a loop": Case(
        "uint t = 0;\nfor (uint i = 0; i <= a.at; i++) {\nif (i == 70) continue;\nt += a.x[i]; // here\n}\nr[g] = t;",
        80,
        ("index", 62, 62),
        right=61,
        written=0,
    ),
    "in a loop's condition": Case(
        "do { r[g] = a.x[a.at]; // here\n} while (a.x[a.at] != 0);", 62, ("index", 62, 62), written=0
    ),
    "in a switch": Case(
        "uint t = 3;\nswitch (a.at & 3) { case 2: t = a.x[a.at]; // here\n"
        "break;\ncase 1: t = 4; default: t = 5; }\nr[g] = t;",
        62,
        ("index", 62, 62),
        written=0,
    ),
}


def instrumented(case: Case, *, optimize: bool = False) -> tuple[Instrumented, bytes, int]:
    """The module, what it was made from, and the number of the wrong line."""
    source = f"{HEAD}{case.declared}\nvoid main() {{\n{case.body}\n}}\n"
    code = compile_glsl(source, optimize=optimize, debug=not optimize)
    found = instrument(code, guard=False, sanitize=SanitizeOptions())
    assert found is not None
    spirv_tools.validate(found.code, target_env="vulkan1.2")
    line = next((i for i, text in enumerate(source.splitlines(), 1) if "// here" in text), 0)
    return found, code, line


def run(device: pumice.Device, code: bytes, at: int, *more: np.ndarray) -> list[np.ndarray]:
    """What a kernel leaves in its buffers."""
    with device.load_kernel(code) as kernel:
        values = np.zeros(LANES, np.uint32)
        values[0] = at
        push = {"push": bytes(16)} if kernel.pipeline.interface.push_constant_bytes else {}
        given = [device.asarray(one.view(np.uint8)) for one in (values, np.full(LANES, 0xAAAA, np.uint32), *more)]
        kernel(*given, groups=1, **push)
        return [one.numpy().view(np.uint32) for one in given]


def report_of(words: np.ndarray, found: Instrumented) -> Report | None:
    return Report.read(words.tobytes(), found.sites)


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


@pytest.mark.sample(16)
@pytest.mark.parametrize("optimize", [False, True], ids=["as compiled", "optimised"])
@pytest.mark.parametrize("name", CASES)
def test_a_wrong_access_is_reported_and_skipped(device: pumice.Device, name: str, optimize: bool) -> None:
    case = CASES[name]
    found, code, line = instrumented(case, optimize=optimize)
    if "uint16_t" in case.body:
        require_features(device.vulkan, "shaderInt16")
    blank = np.zeros(found.report_bytes // 4, np.uint32)
    *right, report = run(device, found.code, case.right, blank)
    assert report_of(report, found) is None
    for ours, plain in zip(right, run(device, code, case.right), strict=True):
        np.testing.assert_array_equal(ours, plain)

    *wrong, report = run(device, found.code, case.wrong, blank)
    said = report_of(report, found)
    assert said is not None
    rule, index, limit = case.reported
    assert (said.site.kind, said.site.rule, said.limit) == (case.kind, rule, limit)
    assert index is None or said.index == index
    assert optimize or said.site.line == line
    if case.written is not None:
        assert wrong[1][5] == case.written


@pytest.mark.parametrize("path", sorted(Path("shaders").rglob("*.spv")), ids=lambda path: path.stem)
def test_shaders_of_the_package_stay_valid(path: Path) -> None:
    found = instrument(path.read_bytes(), guard=True, sanitize=SanitizeOptions())
    assert found is None or spirv_tools.validate(found.code, target_env="vulkan1.2") is None


def test_damaged_modules_are_refused_or_instrumented() -> None:
    """Nothing but a PumiceError comes of any word, as where no ``spirv-val`` is installed to refuse them first."""
    random = np.random.default_rng(5)
    modules = [path.read_bytes() for path in sorted(Path("shaders/examples").glob("*.spv"))]
    refused = 0
    for _ in range(60):
        words = np.frombuffer(modules[random.integers(len(modules))], np.uint32).copy()
        for at in random.integers(5, len(words), random.integers(1, 4)):
            words[at] = words[random.integers(5, len(words))] if random.integers(2) else random.integers(1 << 16)
        try:
            instrument(words.tobytes(), guard=True, sanitize=SanitizeOptions())
        except PumiceError:
            refused += 1
    assert refused > 5
