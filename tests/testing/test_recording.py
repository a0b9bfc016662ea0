"""What is kept of calls, and what is written of it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import pumice
from pumice.testing import NotCloseError, assert_close, nothing_left, recording
from pumice.testing.recording import Recorder
from pumice.testing.reproduction import Reproduction, folder_name, save
from pumice.tools.cli import main

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

LAYER = Path(__file__).parents[2] / "examples" / "layer" / "layer.mlir"
ADD = """
#version 450
layout(local_size_x = 4) in;
layout(set = 1, binding = 2) buffer Sum { float sum[]; };
layout(set = 1, binding = 0) readonly buffer X { float x[]; };
void main() { sum[gl_GlobalInvocationID.x] += x[gl_GlobalInvocationID.x]; }
"""
MIXED = """
#version 450
struct Item { uint kind; vec3 place; };
layout(local_size_x = 1) in;
layout(binding = 0) readonly buffer In { Item item[]; };
layout(binding = 1) writeonly buffer Out { float y[]; };
void main() { y[gl_GlobalInvocationID.x] = item[gl_GlobalInvocationID.x].place.z; }
"""
IMAGE = """
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, r32f) writeonly uniform image2D target;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec2 place = (vec2(at) + vec2(1.5, 0.5)) / vec2(textureSize(source, 0));
    imageStore(target, at, textureLod(source, place, 0.0));
}
"""
SEVERAL = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) uniform texture2D pictures[2];
layout(binding = 1) uniform sampler own;
layout(binding = 2) writeonly buffer Out { float y[]; };
void main() {
    y[0] = textureLod(sampler2D(pictures[0], own), vec2(0.5), 0.0).x
         + textureLod(sampler2D(pictures[1], own), vec2(0.5), 0.0).x;
}
"""
COUNT = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Out { uint y[]; };
layout(push_constant) uniform Push { uint n; };
void main() { uint s = 0; for (uint i = 0; i < n; ++i) s += i ^ (s << 1); y[0] = s; }
"""
ONES = np.ones(4, np.float32)


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device("vulkan") as device:
        yield device


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    with recorder.active():
        yield recorder
    recorder.calls.clear()


def again(saved: Reproduction) -> list[tuple[int, str]]:
    """Status and output of each command."""
    answers = []
    with contextlib.chdir(saved.folder):
        for line in saved.lines:
            done = CliRunner().invoke(main, [*shlex.split(line)[1:]])
            answers.append((done.exit_code, done.output))
    return answers


def wrong(got: object, expected: object) -> NotCloseError:
    with pytest.raises(NotCloseError) as caught:
        assert_close(got, expected)  # type: ignore[arg-type]
    return caught.value


def test_arrays_that_are_read_and_written(device: pumice.Device, recorder: Recorder, tmp_path: Path) -> None:
    with device.load_kernel(ADD) as kernel:
        total = device.zeros(4)
        for _ in range(3):
            kernel(ONES, total)
        error = wrong(total, [3, 3, 3, 4])
        saved = save(tmp_path, recorder.calls, error, ["--device", "vulkan"])
    (last, text), *others = again(saved)
    assert last == 1 and "binding[1.2]: 1 of 4 element(s) differ" in text and "[3]: expected 4.0, got 3.0" in text
    assert [status for status, _ in others] == [0, 0] and "4xf32=1 1 1 1" in others[1][1]


def test_elements_of_several_types(device: pumice.Device, recorder: Recorder, tmp_path: Path) -> None:
    with device.load_kernel(MIXED) as kernel:
        items = np.zeros(2, kernel.dtype("In"))
        items["place"][:, 2] = 7, 8
        error = wrong(kernel(items, pumice.empty(2)), [7, 9])
        saved = save(tmp_path, recorder.calls, error, ["--device", "vulkan"])
    ((status, text),) = again(saved)
    assert status == 1 and "[1]: expected 9.0, got 8.0" in text


def test_programs_called_at_once_and_not(device: pumice.Device, recorder: Recorder, tmp_path: Path) -> None:
    x, w, b = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32), np.zeros(3, np.float32)
    with pumice.Session(device) as session:
        session.load(pumice.compile(LAYER))
        layer = session.lookup("layer.main")
        layer.submit(x, w, b).result()
        layer(x, device.asarray(w), b, wait="block")
        saved = save(tmp_path, recorder.calls, None, ["--device", "vulkan"])
    answers = again(saved)
    assert len(answers) == 2 and all(status == 0 and "2x3xf32=[4 4 4][4 4 4]" in text for status, text in answers)


def test_a_call_that_fails_is_there_too(device: pumice.Device, recorder: Recorder, tmp_path: Path) -> None:
    with device.load_kernel(ADD) as kernel, pytest.raises(pumice.InvalidArgumentError):
        kernel(ONES, ONES[:3].astype(np.float64))
    saved = save(tmp_path, recorder.calls, None, ["--device", "vulkan"])
    ((status, text),) = again(saved)
    assert status == 2 and "as the kernel declares" in text


def test_images(device: pumice.Device, recorder: Recorder, tmp_path: Path) -> None:
    source = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
    with device.load_kernel(IMAGE) as kernel:
        sampler = device.sampler("nearest", "repeat", lod_bias=0.5, max_lod=3)
        on_device = device.asimage(source)
        first = kernel((source, sampler), pumice.empty((3, 4), np.float32))
        kernel(on_device.with_sampler(sampler), device.empty_image((3, 4), "r32float")).numpy()
        on_device.copy_from(np.zeros_like(source))
        error = wrong(first, np.roll(source, 2, axis=1))
        saved = save(tmp_path, recorder.calls, error, ["--device", "vulkan"])
    answers = again(saved)
    assert "--sampler 0=filter=nearest" in saved.lines[0] and not saved.notes
    # The contents are those of both calls: the last one is compared.
    assert [status for status, _ in answers] == [1, 0] and "element(s) differ" in answers[0][1], answers
    assert answers[1][1].splitlines()[-1] in answers[0][1]


def test_arrays_of_bindings_and_samplers_of_their_own(
    device: pumice.Device, recorder: Recorder, tmp_path: Path
) -> None:
    with device.load_kernel(SEVERAL) as kernel:
        pictures = [np.full((1, 1), value, np.float32) for value in (1, 2)]
        total = kernel(pictures, device.sampler("nearest"), pumice.empty(1))
        saved = save(tmp_path, recorder.calls, wrong(total, 4.0), ["--device", "vulkan"])
    ((status, text),) = again(saved)
    assert status == 1 and "[0]: expected 4.0, got 3.0" in text, text


def test_what_is_kept_is_let_go_of(device: pumice.Device) -> None:
    recorder = Recorder()
    with nothing_left(), recorder.active(), device.load_kernel(IMAGE) as kernel:
        kernel(device.asimage(np.ones((4, 4), np.float32)), pumice.empty((4, 4)))
        kernel(np.ones((4, 4), np.float32), device.empty_image((4, 4), "r32float"))
        with device.load_kernel(COUNT) as count:  # which is still at work when the block ends
            count(device.zeros(1, np.uint32), n=60_000)
        recorder.calls.pop()
        assert len(recorder.calls) == 2
        recorder.calls.clear()


def test_what_cannot_be_kept_is_said(
    device: pumice.Device, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with device.load_kernel(IMAGE) as image, device.load_kernel(ADD) as add:
        image(device.asimage(np.ones((4, 4), np.float32), mips=True), pumice.empty((1, 1)))
        monkeypatch.setattr(recording, "_MAX_BYTES", 16)
        add(ONES, device.zeros(4))
        saved = save(tmp_path, recorder.calls, None, [])
    assert saved.lines == () and len(saved.notes) == 2
    assert "binding 0: an image with levels or samples" in saved.notes[0]
    assert "binding 1.2" in saved.notes[1] and "more than the" in saved.notes[1]
    assert saved.text().count("not saved: the call of ") == 2


def test_only_the_last_calls_are_kept_and_none_after_the_block(device: pumice.Device) -> None:
    recorder = Recorder()
    before = pumice.Kernel.__call__
    with device.load_kernel(ADD) as kernel:
        with recorder.active():
            for _ in range(20):
                kernel(ONES, ONES)
        assert len(recorder.calls) == 8 and pumice.Kernel.__call__ is before
        recorder.calls.clear()
        kernel(ONES, ONES)
        assert not recorder.calls


def test_a_folder_of_an_earlier_failure_is_emptied_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    save(tmp_path, [], None, [])
    assert (tmp_path / "mine").exists()
    (tmp_path / "old.npy").touch()
    save(tmp_path, [], None, [])
    assert [path.name for path in tmp_path.iterdir()] == ["reproduce.sh"]


def test_names_of_folders() -> None:
    assert folder_name("tests/test_a.py::TestB::test_c[x/y-1]") == "tests-test_a.py-TestB-test_c-x-y-1"
    long = [folder_name(f"tests/test_a.py::test[{'x' * 300}{end}]") for end in "ab"]
    assert len(set(long)) == 2 and max(map(len, long)) <= 120
