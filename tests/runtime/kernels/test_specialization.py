"""Kernels and the values of their specialization constants."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.devices.shader_tools import needs_compiler

import pumice
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = [pytest.mark.vulkan, needs_compiler]

SCALE = """
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint BLOCK = 32;
layout(constant_id = 1) const int factor = 3;
#ifdef OTHER
layout(constant_id = 2) const int dropped = 1;
#endif
layout(binding = 0) buffer X { int x[]; };
shared int parts[BLOCK / 16];
void main() {
    if (gl_LocalInvocationID.x == 0) parts[0] = factor;
    barrier();
    x[gl_GlobalInvocationID.x] = int(gl_WorkGroupSize.x) * 1000 + int(BLOCK) * 10 + parts[0];
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


def run(kernel: pumice.Kernel) -> int:
    return int(kernel(np.zeros(64, np.int32), groups=1)[0])


def test_two_defaults_are_a_warning_that_names_both(device: pumice.Device, caplog: pytest.LogCaptureFixture) -> None:
    """glslang gives the workgroup's size a default of its own: 1."""
    with caplog.at_level(logging.WARNING, "pumice.kernels"):
        assert run(device.load_kernel(SCALE)) == 1 * 1000 + 32 * 10 + 3
    (record,) = caplog.records
    message = record.getMessage()
    assert "0 (BLOCK)" in message and "1 and 32" in message and "size in x" in message
    assert "specialization={0: 32}" in message


@pytest.mark.parametrize("key", [0, "BLOCK"])
def test_a_value_sets_every_constant_of_the_id(
    device: pumice.Device, caplog: pytest.LogCaptureFixture, key: int | str
) -> None:
    with caplog.at_level(logging.WARNING, "pumice.kernels"):
        assert run(device.load_kernel(SCALE, specialization={key: 64})) == 64 * 1000 + 64 * 10 + 3
    assert not caplog.records


def test_lengths_are_judged_at_the_values_in_use(device: pumice.Device) -> None:
    code = compile_glsl(SCALE.replace("BLOCK = 32", "BLOCK = 8"))
    with pytest.raises(pumice.InvalidArgumentError, match=r"length 0.* that set it: 0 \(BLOCK\)"):
        device.load_kernel(code)
    assert run(device.load_kernel(code, specialization={0: 16})) == 16 * 1000 + 16 * 10 + 3
    with pytest.raises(pumice.InvalidArgumentError, match="length 0"):
        device.load_kernel(SCALE, specialization={"BLOCK": 4})
    with pytest.raises(pumice.InvalidArgumentError, match="shared memory are more than"):
        device.load_kernel(SCALE.replace("BLOCK / 16", "factor"), specialization={0: 16, 1: 1 << 24})


def test_constants_that_the_compiler_dropped_are_ignored_with_a_note(
    device: pumice.Device, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "options.glsl").write_text(
        "#ifdef OTHER\nlayout(constant_id = 7) const uint from_include = 1;\n#endif\n"
    )
    included = SCALE.replace("#version 450", '#version 450\n#include "options.glsl"')
    (tmp_path / "kernel.comp").write_text(included)
    stripped = compile_glsl(SCALE)
    cases: list[tuple[str | Path | bytes, int | str]] = [
        (SCALE, "dropped"),
        (SCALE, 2),
        (tmp_path / "kernel.comp", "from_include"),
        (tmp_path / "kernel.comp", 7),
        (stripped, 2),
        (stripped, 40),  # nothing tells a dropped constant from a wrong number
    ]
    for source, key in cases:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "pumice.kernels"):
            kernel = device.load_kernel(source, specialization={0: 32, key: 5})
        assert run(kernel) == 32 * 1000 + 32 * 10 + 3
        (record,) = caplog.records
        assert f"specialization constant {key} is ignored" in record.getMessage()
        assert "0 (BLOCK), 1 (factor)" in record.getMessage()


@pytest.mark.parametrize("key", ["facter", 40])
def test_what_the_source_does_not_declare_is_an_error(device: pumice.Device, key: int | str) -> None:
    with pytest.raises(pumice.NotFoundError, match=rf"{key}.*it has: 0 \(BLOCK\), 1 \(factor\)"):
        device.load_kernel(SCALE, specialization={key: 1})


@pytest.mark.parametrize("key", ["dropped", -1, 1 << 32])
def test_names_of_stripped_modules_and_what_is_no_id_are_errors(device: pumice.Device, key: int | str) -> None:
    with pytest.raises(pumice.NotFoundError, match=str(key)):
        device.load_kernel(compile_glsl(SCALE), specialization={key: 1})


def test_one_constant_takes_one_value(device: pumice.Device) -> None:
    with pytest.raises(pumice.InvalidArgumentError, match="given twice, as 32 and 64"):
        device.load_kernel(SCALE, specialization={0: 32, "BLOCK": 64})
    assert run(device.load_kernel(SCALE, specialization={0: 32, "BLOCK": 32})) == 32323


def test_a_value_must_be_the_same_bytes_in_every_type(device: pumice.Device) -> None:
    mixed = SCALE.replace("const uint BLOCK = 32", "const float BLOCK = 32").replace("BLOCK / 16", "2")
    with pytest.raises(pumice.InvalidArgumentError, match="different types"):
        device.load_kernel(mixed, specialization={0: 64})
