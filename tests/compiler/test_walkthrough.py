"""The walkthrough's program from its graph to a result, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.compiler import walkthrough
from support.peer import run_peer

import pumice
from pumice.compiler.frontends.graphdef.file import messages
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_data
from pumice.compiler.stages import STAGES
from pumice.tools.cli import main

pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")

A, B = np.array([1, 2, 3, 4], np.float32), np.array([0.5, -1, 2, 2.5], np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module and every stage in files, as the command writes them."""
    path = tmp_path_factory.mktemp("walkthrough")
    arguments = [walkthrough.GRAPH, "--target", "vulkan,reference", "-o", path / "module.vmfb", "--dump-ir", path]
    done = CliRunner().invoke(main, ["compile", *map(str, arguments)])
    assert (done.exit_code, done.stderr) == (0, "")
    return path


def test_the_page_shows_what_the_compiler_prints() -> None:
    page = walkthrough.PAGE.read_text(encoding="utf-8")
    assert walkthrough.written(page) == page, "run python tests/support/compiler/walkthrough.py"


def test_every_stage_is_on_file_and_makes_the_module(folder: Path) -> None:
    files = sorted(path for path in folder.iterdir() if path.suffix != ".vmfb")
    assert [path.stem.partition("-")[2] for path in files] == list(STAGES)
    for path in files[1:]:
        stage = path.stem.partition("-")[2]
        module = pumice.compile(path, targets=("vulkan", "reference"), from_=stage)
        assert module == (folder / "module.vmfb").read_bytes(), path


def test_a_binary_graph_is_written_out_as_text() -> None:
    graph = messages.parse_text(walkthrough.GRAPH.read_text(encoding="utf-8"))
    found = []
    data = graph.SerializeToString()  # type: ignore[attr-defined]
    for _ in range(2):
        found.append(compile_data(data, "simple_mul.pb", Target(), until="regions").program.text(with_locations=False))
        data = compile_data(data, "simple_mul.pb", Target(), until="graphdef").program.text().encode()
        assert data.startswith(b"node {")
    assert found[0] == found[1] == walkthrough.stages()["regions"]


@pytest.mark.vulkan
@pytest.mark.peer
def test_the_module_gives_the_same_on_every_device_and_runtime(folder: Path) -> None:
    module = folder / "module.vmfb"
    for device in ("vulkan", "reference"):
        with pumice.Session(device=device) as session:
            session.load(module)
            np.testing.assert_array_equal(session.call("simple_mul.simple_mul", A, B).numpy(), A * B)
    inputs = [f"--input=4xf32={','.join(map(str, each))}" for each in (A, B)]
    run = run_peer("iree-run-module", "--device=vulkan", f"--module={module}", "--function=simple_mul", *inputs)
    assert "4xf32=0.5 -2 6 10" in run.stdout
