"""``pumice run`` with blocks of several types: JSON in, JSON out, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import pumice
from pumice.tools.cli import main

pytestmark = pytest.mark.vulkan

SOURCE = """#version 450
layout(local_size_x = 4) in;
struct Particle { vec3 place; uint kind; };
struct Way { vec2 wind; float gain; };
layout(std430, binding = 0) buffer Particles { Particle items[]; } particles;
layout(std140, binding = 1) uniform Settings { float scale; ivec2 offset; mat2 turn; } settings;
layout(std430, binding = 2) buffer Sums { float sums[]; };
layout(push_constant) uniform Push { Way way[2]; uint kind; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= particles.items.length()) return;
    particles.items[i].place = particles.items[i].place * settings.scale + vec3(settings.offset, 0.1);
    particles.items[i].place.xy += way[1].wind;
    particles.items[i].kind += kind;
    sums[i] = settings.turn[1][0] * way[0].gain;
}
"""
SETTINGS = '{"scale": 2, "offset": [10, 20], "turn": [[1, 2], [3, 4]]}'
WAY = '[{"wind": [0, 0], "gain": 3}, {"wind": [0.5, 0], "gain": 0}]'
PARTICLES = '[{"place": [1, 2, 3], "kind": 7}, {"place": [4, 5, 6], "kind": 8}]'
MOVED = '[{"place": [12.5, 24.0, 6.1], "kind": 8}, {"place": [18.5, 30.0, 12.1], "kind": 9}]'
BASE = ("-b", f"particles={PARTICLES}", "-b", f"settings={SETTINGS}", "-b", "2=2xf32")
PUSH = ("--push", f"way={WAY}", "--push", "kind=1")


@pytest.fixture(scope="module")
def shader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "move.comp"
    path.write_text(SOURCE)
    return path


def run(shader: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", str(shader), *arguments])


def test_blocks_and_their_results_are_json(shader: Path) -> None:
    result = run(shader, *BASE, *PUSH, "--expect", f"particles={MOVED}", "--expect", "2=[6, 6]")
    assert result.exit_code == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert second == "binding[2]: 2xf32=6 6"
    with pumice.open_device() as device:
        kernel = device.load_kernel(SOURCE)
        expected, _ = kernel(  # type: ignore[misc]
            json.loads(PARTICLES), json.loads(SETTINGS), pumice.empty(2), way=json.loads(WAY), kind=1
        )
    printed = json.loads(first.removeprefix("binding[0]: "))
    np.testing.assert_array_equal(np.float32([one["place"] for one in printed]), expected["place"])
    assert [one["kind"] for one in printed] == [8, 9]
    assert first == f"binding[0]: {MOVED}"


def test_files_names_of_blocks_and_whole_push_blocks(shader: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(SETTINGS)
    (tmp_path / "push.json").write_text(f'{{"way": {WAY}, "kind": 1}}')
    stored = tmp_path / "moved.npy"
    result = run(
        shader,
        *("-b", f"Particles={PARTICLES}", "-b", f"Settings=@{tmp_path}/settings.json", "-b", "2=[0, 0]"),
        *("--push", f"@{tmp_path}/push.json", "-o", f"0=@{stored}"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "binding[2]: 2xf32=6 6\n"
    moved = np.load(stored)
    assert moved.dtype.names == ("place", "kind")
    np.testing.assert_array_equal(moved["kind"], [8, 9])


def test_zeros_and_long_results(shader: Path) -> None:
    result = run(shader, "-b", "0=2000xblock", "-b", "1=block", "-b", "2=2000xf32", *PUSH)
    assert result.exit_code == 0, result.stderr
    first = result.stdout.splitlines()[0]
    assert first.startswith('binding[0]: [{"place": [0.5, 0.0, 0.1], "kind": 1}, {')
    assert first.endswith(", ...]")
    assert first.count("place") == 256


def test_runs_with_blocks_are_captured(shader: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.amber"
    result = run(shader, *BASE, *PUSH, "--to-amber", str(script))
    assert result.exit_code == 0, result.stderr
    again = CliRunner().invoke(main, ["run", str(script)])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-b", 'settings={"scale": 2,}'), r"JSON line 1 column 12: .*\n  {\"scale\": 2,}\n +\^|JSON line 1 column 13"),
        (("-b", 'settings={"scale": 2}'), r"settings: member\(s\) int vec2 offset, float 2x2 matrix turn not given"),
        (("-b", 'settings={"scale": 1, "scale": 2}'), "'scale' is given twice in one object"),
        (("-b", SETTINGS.replace("10", "1.5").join(["settings=", ""])), "member offset takes int vec2"),
        (("-b", "settings=[1]"), "is one block"),
        (("-b", "settings=3xblock"), "is one block; write block for zeros"),
        (("-b", "settings=@none.json"), "no such file: none.json"),
        (("-b", "settings=" + "[" * 100000), "the JSON nests too deep|Expecting value"),
        (("-b", "settings=8xf32"), "of several types"),
        (("-b", f"settings={SETTINGS}", "--expect", "0=[1]"), "is a structure"),
        (("-b", f"settings={SETTINGS}", "--expect", "0=2xf32=1"), "write it as JSON"),
        (("-b", f"settings={SETTINGS}", "--push", "way=3"), "way is given twice"),
        (("-b", f"settings={SETTINGS}", "--push", '{"kind": 2}'), "kind is given twice"),
    ],
)
def test_wrong_blocks(shader: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run(shader, *BASE[:2], *BASE[4:], *PUSH, *arguments)
    assert result.exit_code in (1, 2)
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.stderr


def test_what_differs_is_named(shader: Path) -> None:
    wrong = MOVED.replace("24.0", "25").replace('"kind": 9', '"kind": 10')
    result = run(shader, *BASE, *PUSH, "--expect", f"0={wrong}")
    assert result.exit_code == 1
    assert "binding[0]: 2 scalar(s) differ" in result.stderr
    assert "[0].place[1]: expected 25.0, got 24.0" in result.stderr
    assert "[1].kind: expected 10, got 9" in result.stderr
