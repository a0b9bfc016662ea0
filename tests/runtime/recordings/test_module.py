"""Recordings saved as compiled programs do what their runs do: in sessions, as HAL code and as C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.codegen.c_programs import CANNOT_BUILD, build, run

import pumice
from pumice.status import UnimplementedError
from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan

_TALLY = """
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 3) const uint by = 1;
layout(binding = 0) buffer Tally { uint tally[]; };
void main() { atomicAdd(tally[gl_WorkGroupID.x], by); }
"""


@pytest.fixture
def saved(device: pumice.Device, add: pumice.Kernel, tmp_path: Path) -> tuple[Path, list[pumice.DeviceArray]]:
    """A recording of every kind of step, and its arrays in the order of first use, after a run."""
    tally = device.load_kernel(_TALLY, specialization={"by": 5})
    generator = np.random.default_rng(1)
    x = device.asarray(generator.integers(0, 9, 100).astype(np.float32))
    y, z, hits = device.zeros(100), device.asarray(np.full(100, 7, np.float32)), device.zeros(16, np.uint32)
    groups = device.asarray(np.array([7, 1, 1], np.uint32))
    with device.record("saved") as step:
        add(x, y, dt=0.5, n=100)
        add(x[64:], y[:36], dt=0.25, n=30)
        tally(hits, groups=groups)
        tally(hits, groups=2)
        z.copy_from(y)
        z[50:] = x[50:]
        hits[12:] = hits[:4]
        scratch = device.zeros(4, np.int32)
    step.save(tmp_path / "saved.vmfb")
    step.run()
    return tmp_path / "saved.vmfb", [x, y, hits, groups, z, scratch]


def _inputs(arrays: list[pumice.DeviceArray]) -> list[np.ndarray]:
    x, _, _, groups, _, _ = (array.numpy() for array in arrays)
    return [x, np.zeros(100, "f4"), np.zeros(16, "u4"), groups, np.zeros(100, "f4"), np.ones(4, "i4")]


def test_in_a_session(device: pumice.Device, saved: tuple[Path, list[pumice.DeviceArray]]) -> None:
    path, arrays = saved
    with pumice.Session(device) as session:
        session.load(path)
        for _ in range(3):
            results = session.call("recording.run", *_inputs(arrays))
            for result, index in zip(results, (1, 2, 4, 5), strict=True):
                np.testing.assert_array_equal(result.numpy(), arrays[index].numpy())
        with pytest.raises(pumice.InvalidArgumentError):
            session.call("recording.run", *(np.zeros(5, np.float32) for _ in range(6)))


def test_as_code_on_the_hal(
    device: pumice.Device, saved: tuple[Path, list[pumice.DeviceArray]], tmp_path: Path
) -> None:
    path, arrays = saved
    code = tmp_path / "code.py"
    assert CliRunner().invoke(main, ["codegen", "--hal", str(path), "-o", str(code)]).exit_code == 0
    names: dict[str, object] = {"__name__": "code"}
    exec(compile(code.read_text(), str(code), "exec"), names)
    with names["Recording"].create(device.hal) as program:  # type: ignore[attr-defined]
        views = [program.to_device(array) for array in _inputs(arrays)]
        results = program.run(*views)
        for result, index in zip(results, (1, 2, 4, 5), strict=True):
            np.testing.assert_array_equal(program.to_host(result), arrays[index].numpy())


@pytest.mark.skipif(bool(CANNOT_BUILD), reason=CANNOT_BUILD)
def test_as_a_c_program(saved: tuple[Path, list[pumice.DeviceArray]], tmp_path: Path) -> None:
    path, arrays = saved
    program = build(tmp_path, path.read_bytes())
    for result, index in zip(run(program, _inputs(arrays)), (1, 2, 4, 5), strict=True):
        np.testing.assert_array_equal(result, arrays[index].numpy())


def test_what_programs_have_not(device: pumice.Device, add: pumice.Kernel, tmp_path: Path) -> None:
    x, y = device.zeros(100), device.zeros(100)
    image = device.load_kernel(
        """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0, r32f) uniform image2D target;
void main() { imageStore(target, ivec2(0), vec4(1)); }
"""
    )
    with device.record() as of_host:
        add(np.zeros(100, np.float32), y, dt=1, n=100)
    with device.record() as of_images:
        image(device.empty_image((8, 8), "r32float"), groups=1)
    with device.record() as unaligned:
        add(x[1:], y, dt=1, n=99)
    for step in (of_host, of_images, *([unaligned] if add.pipeline.offset_alignment > 4 else [])):
        with pytest.raises(UnimplementedError, match="arrays"):
            step.save(tmp_path / "refused.vmfb")
    assert not (tmp_path / "refused.vmfb").exists()
