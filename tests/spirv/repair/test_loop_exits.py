"""Values of invocations that leave a loop before others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.devices.loop_programs import LANES, LENGTHS, WORDS, Program
from support.devices.shader_tools import needs_compiler, needs_tools

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.driver_faults import DriverFault
from pumice.spirv.repair.driver_repairs import with_repairs
from pumice.spirv.repair.loop_exits import with_kept_loop_values
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = [needs_compiler, needs_tools]

HEAD = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const bool ALWAYS = true;
layout(binding = 0) readonly buffer X { uint xs[]; };
layout(binding = 1) readonly buffer N { uint ns[]; };
layout(binding = 2) writeonly buffer R { uint rs[]; };
struct Pair { uint a; uvec2 b; };
uint kept;
shared uint counts[64];
uint word(uint k) { return xs[k & 255u]; }
uint found(uint i, uint n) { for (uint k = 0u;; k++) { uint r = word(i + k); if (k >= n) return r; } }
void last(uint i, uint n, inout uint r) { uint k = 0u; do { r = word(i + k); } while (k++ < n); }
"""
MAIN = "void main() {{ uint i = gl_GlobalInvocationID.x, n = ns[i], k = 0u, r = 7u; {statement} rs[i] = r ^ xs[0]; }}"
Meaning = Callable[[np.ndarray, np.ndarray], np.ndarray]


def end(i: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The word at the last index that an invocation visits."""
    return WORDS[i + n]


def total(i: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The sum of all visited words."""
    return np.array([WORDS[a : a + b + 1].sum(dtype=np.uint32) for a, b in zip(i, n, strict=True)], np.uint32)


# Loops that lose values, and what they give.
LOSING: dict[str, tuple[str, Meaning]] = {
    "do": ("do { r = word(i + k); } while (k++ < n);", end),
    "a sum": ("r = 0u; do { r += word(i + k); } while (k++ < n);", total),
    "break": ("while (true) { r = word(i + k); if (k >= n) break; k++; }", end),
    "break after more": (
        "for (;;) { r = word(i + k); if (k >= n) { r ^= word(k); break; } k++; }",
        lambda i, n: WORDS[i + n] ^ WORDS[n],
    ),
    "a constant condition": ("while (ALWAYS) { r = word(i + k); if (k >= n) break; k++; }", end),
    "a loading condition": ("while ((r = word(i + k)) != 0u && k < n) k++;", end),
    "a returning function": ("r = found(i, n);", end),
    "an inout parameter": ("last(i, n, r);", end),
    "nested": (
        "do { uint j = 0u; do { r = word(i + j + k); } while (j++ < n / 2u); } while (k++ < n);",
        lambda i, n: WORDS[i + n + n // 2],
    ),
    "after a nested loop": (
        "uint s; do { uint j = 0u; do { s = word(i + k); } while (j++ < n); r = s + 1u; } while (k++ < n);",
        lambda i, n: WORDS[i + n] + np.uint32(1),
    ),
    "a structure": (
        "Pair p; p.a = 0u; do { p.b.y = word(i + k); p.a += p.b.y; } while (k++ < n); r = p.b.y + p.a;",
        lambda i, n: end(i, n) + total(i, n),
    ),
    "a private variable": ("do { kept = word(i + k); } while (k++ < n); r = kept;", end),
    "an array": ("uint a[2]; do { a[1] = word(i + k); a[0] = k; } while (k++ < n); r = a[1] + a[0] - n;", end),
    "a float": (
        "float x; do { x = float(word(i + k) & 255u); } while (k++ < n); r = uint(x);",
        lambda i, n: end(i, n) & 255,
    ),
    "an atomic": ("counts[i] = 0u; do { r = atomicAdd(counts[i], 1u); } while (k++ < n);", lambda i, n: n),
}
# Loops whose values are phis already.
KEEPING: dict[str, tuple[str, Meaning]] = {
    "for": ("for (; k <= n; k++) r = word(i + k);", end),
    "a sum in for": ("r = 0u; for (; k <= n; k++) r += word(i + k);", total),
    "while": ("bool more = true; while (more) { r = word(i + k); more = k++ < n; }", end),
    "two exits": ("for (; k < 20u; k++) { r = word(i + k); if (k >= n) break; }", end),
}
CASES = LOSING | KEEPING
FORMS = ["as written", "optimized"]


def kernel_of(statement: str, form: str) -> bytes:
    code = compile_glsl(HEAD + MAIN.format(statement=statement))
    return spirv_tools.optimize(code, "vulkan1.2") if form == "optimized" else code


@pytest.fixture(scope="module")
def loop_device() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


def computed(device: pumice.Device, code: bytes) -> np.ndarray:
    with device.load_kernel(code) as kernel:
        result = kernel(WORDS, LENGTHS, pumice.empty(LANES, np.uint32), groups=1)
    assert isinstance(result, np.ndarray)
    return result


@pytest.mark.sample(16)
@pytest.mark.vulkan
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_each_invocation_keeps_its_last_values(loop_device: pumice.Device, name: str, form: str) -> None:
    statement, meaning = CASES[name]
    found = computed(loop_device, kernel_of(statement, form))
    np.testing.assert_array_equal(found ^ WORDS[0], meaning(np.arange(LANES), LENGTHS))


@pytest.mark.vulkan
def test_a_loop_of_a_function_that_a_loop_calls(loop_device: pumice.Device) -> None:
    """Inside of a loop, Mesa knows that its exit was not taken, and drops others of the same condition."""
    code = compile_glsl("""#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer N { uint ns[]; };
layout(binding = 1) readonly buffer X { uint xs[]; };
layout(binding = 2) writeonly buffer R { uint rs[]; };
uint inner(uint i) { uint r, k = 0; do { r = xs[i]; k++; } while (k < ns[7 - i]); return r; }
void main() {
  uint i = gl_GlobalInvocationID.x, n = ns[i], k = 0, r = 7;
  if (i >= 8) return;
  do { r = xs[inner(i) - i + n]; k++; } while (k < n);
  rs[i] = r;
}
""")
    lengths = np.array([5, 1, 8, 3, 7, 2, 6, 4], np.uint32)
    with loop_device.load_kernel(code) as kernel:
        found = kernel(lengths, np.arange(64, dtype=np.uint32), pumice.empty(8, np.uint32), groups=1)
    np.testing.assert_array_equal(found, lengths)


@pytest.mark.sample(10)
@pytest.mark.vulkan
@pytest.mark.parametrize("seed", range(400))
def test_random_programs(loop_device: pumice.Device, seed: int) -> None:
    program = Program(seed)
    code = compile_glsl(program.source)
    if seed % 2:
        code = spirv_tools.optimize(code, "vulkan1.2")
    np.testing.assert_array_equal(computed(loop_device, code), program.expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LOSING)
def test_loops_that_lose_values_get_another_exit(name: str, form: str) -> None:
    code = kernel_of(LOSING[name][0], form)
    changed = with_kept_loop_values(code, reflect(code))
    assert changed != code
    spirv_tools.validate(changed)
    assert with_repairs(code, reflect(code), {DriverFault.LOOP_EXITS}) == changed


@pytest.mark.parametrize("name", KEEPING)
def test_other_loops_stay_as_they_are(name: str) -> None:
    code = compile_glsl(HEAD.partition("uint found")[0] + MAIN.format(statement=KEEPING[name][0]))
    assert with_kept_loop_values(code, reflect(code)) is code


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_stay_valid(seed: int) -> None:
    code = compile_glsl(Program(seed).source)
    for form in (code, spirv_tools.optimize(code, "vulkan1.2")):
        spirv_tools.validate(with_kept_loop_values(form, reflect(form)))


def test_pointers_are_made_again_after_a_loop() -> None:
    """A pointer to a buffer's element that the loop computes, and a store through it after the loop."""
    code = kernel_of("do { r = word(i + k); } while (k++ < n);", "optimized")
    text = spirv_tools.disassemble(code)
    loop = text.index("OpLoopMerge")
    element = text.index("OpAccessChain", loop)
    name = text[text.rindex("\n", 0, element) : element].split()[0]
    store = text.rindex("OpStore")
    moved = f"{text[:store]}OpStore {name} %uint_0\n               {text[store:]}"
    code = spirv_tools.assemble(moved.replace("NonWritable", "Restrict"), "vulkan1.2")
    spirv_tools.validate(code)
    spirv_tools.validate(with_kept_loop_values(code, reflect(code)))
