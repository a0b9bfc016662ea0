"""Loops that the driver cuts are reported, and no others: the module is run with its report as one more argument."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.shader_tools import needs_compiler

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.instrument.reports import Report, ReportKind
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = [pytest.mark.vulkan, needs_compiler]

LANES = 32
HEAD = f"""
#version 450
layout(local_size_x = {LANES}) in;
layout(set = 0, binding = 0) buffer A {{ uint n; uint zero; }};
layout(set = 0, binding = 1) buffer B {{ uint r[]; }};
shared uint s[{LANES}];
uint counted(uint most) {{ uint c = 0; for (uint i = 0; i < most; i++) c++; return c; }}
"""
MAIN = "void main() {{ uint g = gl_GlobalInvocationID.x, c = 0; {} }}"
# The body, and what it writes with n = 10, 1,000 or 100,000.
BODIES = {
    "one loop": "for (uint i = 0; i < n; i++) c++; r[g] = c;",
    "nested": "for (uint i = 0; i < n / 100; i++) for (uint j = 0; j < 100; j++) c++; r[g] = c + n % 100;",
    "divergent": "for (uint i = 0; i < n / (1 + g % 7); i++) c++; r[g] = n - n / (1 + g % 7) + c;",
    "break": "while (true) { c++; if (c == n) break; } r[g] = c;",
    "continue": "for (uint i = 0; i < 2 * n; i++) { if ((i & 1) == zero) continue; c++; } r[g] = c;",
    "do": "do { c++; } while (c < n); r[g] = c;",
    "early return": "r[g] = 0; for (uint i = 0;; i++) { if (i == n) { r[g] = i; return; } }",
    "return after the inner loop": "for (uint i = 0; i < n; i++) { for (uint j = 0; j < n; j++) c++; r[g] = c; if (i == zero) return; }",  # noqa: E501
    "cut in the last outer pass": "for (uint i = 0; i < 2; i++) for (uint j = 0; j < i * n; j++) c++; r[g] = c;",
    "in a function": "r[g] = counted(n);",
    "function in a loop": "for (uint i = 0; i < n / 10; i++) c += counted(10); r[g] = c;",
    "function in two places": "r[g] = counted(n / 2); for (uint i = 0; i < 2 + zero; i++) c += counted(n / 4); r[g] += c - n / 4 * 2 + n / 2;",  # noqa: E501
    "sequence": "for (uint i = 0; i < n / 2; i++) c++; for (uint i = 0; i < n / 2; i++) c += 1 + zero; r[g] = c;",
    "some invocations": "if (g % 5 == 1) { for (uint i = 0; i < n; i++) c++; } else c = n; r[g] = c;",
    "switch": "for (uint i = 0; i < n; i++) { switch (i & 3) { case 0: c += 2; break; case 1: continue; default: c++; } } r[g] = c;",  # noqa: E501
}
BARRIER = "for (uint i = 0; i < n; i++) { s[gl_LocalInvocationIndex] = i; barrier(); c += uint(s[31 - gl_LocalInvocationIndex] == i); barrier(); } r[g] = c;"  # noqa: E501


def run(device: pumice.Device, body: str, n: int, *, optimize: bool = False) -> tuple[np.ndarray, Report | None]:
    """What the kernel writes, and its report."""
    code = compile_glsl(HEAD + MAIN.format(body), optimize=optimize, debug=not optimize)
    found = instrument(code)
    assert found is not None and (found.set, found.binding) == (0, 2)
    spirv_tools.validate(found.code, target_env="vulkan1.2")
    with device.load_kernel(found.code) as kernel:
        words = np.zeros(found.report_bytes // 4, np.uint32)
        results = kernel(np.array([n, 0], np.uint32), np.zeros(LANES, np.uint32), words, groups=1)
    assert isinstance(results, tuple)
    *_, written, report = results
    return np.asarray(written), Report.read(np.asarray(report).tobytes(), found.sites)


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device(loop_guard=False) as opened:
        yield opened


@pytest.mark.sample(10)
@pytest.mark.parametrize("optimize", [False, True], ids=["as compiled", "optimised"])
@pytest.mark.parametrize("name", BODIES)
def test_a_cut_is_reported_and_nothing_else(device: pumice.Device, name: str, optimize: bool) -> None:
    for n in (10, 1000):
        written, report = run(device, BODIES[name], n, optimize=optimize)
        assert report is None
        assert (written == n).all()
    written, report = run(device, BODIES[name], 100_000, optimize=optimize)
    if (written != 100_000).any():  # else this driver cuts no loops
        assert report is not None
        assert report.site.kind is ReportKind.LOOPS_CUT
        if not optimize:
            assert report.site.line == (7 if name == "in a function" else 8)


def test_each_entry_point_has_its_own_sentinel(device: pumice.Device) -> None:
    text = spirv_tools.disassemble(compile_glsl(HEAD + MAIN.format(BODIES["early return"])))
    entry = next(line for line in text.splitlines() if "OpEntryPoint" in line)
    code = spirv_tools.assemble(text.replace(entry, entry + "\n" + entry.replace('"main"', '"other"')), "vulkan1.2")
    found = instrument(code)
    assert found is not None
    spirv_tools.validate(found.code, target_env="vulkan1.2")
    for name in ("main", "other"):
        with device.load_kernel(found.code, entry_point=name) as kernel:
            words = np.zeros(found.report_bytes // 4, np.uint32)
            results = kernel(np.array([10, 0], np.uint32), np.zeros(LANES, np.uint32), words, groups=1)
        assert isinstance(results, tuple)
        *_, written, report = map(np.asarray, results)
        assert (written == 10).all() and not report.any()


def test_entry_points_with_inputs_of_their_own() -> None:
    """As naga writes them: each entry point has its own variable for a built-in input."""
    body = BODIES["one loop"].replace("n;", "n + gl_WorkGroupID.x;")
    lines = spirv_tools.disassemble(compile_glsl(HEAD + MAIN.format(body))).splitlines()
    start = next(at for at, line in enumerate(lines) if "%main = OpFunction" in line)
    end = next(at for at, line in enumerate(lines) if at > start and "OpFunctionEnd" in line) + 1
    ids = {line.split(" = ")[0].strip() for line in lines[start:end] if " = " in line}
    copied = "\n".join(lines[start:end])
    for name in sorted(ids | {"%gl_WorkGroupID"}, key=len, reverse=True):
        copied = re.sub(rf"{re.escape(name)}\b", f"{name}_copy", copied)
    entry = next(line for line in lines if "OpEntryPoint" in line)
    mode = next(line for line in lines if "OpExecutionMode" in line)
    decorated = next(line for line in lines if "OpDecorate %gl_WorkGroupID" in line)
    variable = next(line for line in lines if "%gl_WorkGroupID = " in line)
    other = entry.replace("%main", "%main_copy").replace('"main"', '"other"')
    text = "\n".join(lines[:end]) + "\n" + copied
    for line, more in (
        (entry, other.replace("%gl_WorkGroupID", "%gl_WorkGroupID_copy")),
        (mode, mode.replace("%main", "%main_copy")),
        (decorated, decorated.replace("%gl_WorkGroupID", "%gl_WorkGroupID_copy")),
        (variable, variable.replace("%gl_WorkGroupID", "%gl_WorkGroupID_copy")),
    ):
        text = text.replace(line, line + "\n" + more, 1)
    found = instrument(spirv_tools.assemble(text, "vulkan1.2"))
    assert found is not None
    spirv_tools.validate(found.code, target_env="vulkan1.2")
