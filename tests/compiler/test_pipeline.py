"""Programs from text to a module, run on Vulkan, on the peer's runtime, and by the operations' definitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.compiler.tensor_programs import CHOICE, LAYER, POWERS, SIMPLE_MUL
from support.peer import run_peer

import pumice
from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


def compiled(text: str) -> bytes:
    return compile_text(text, "x.mlir", Target()).module


@pytest.mark.vulkan
def test_the_walkthroughs_program_multiplies(opened: pumice.Device) -> None:
    a, b = np.arange(4, dtype=np.float32), np.full(4, 2.5, np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(SIMPLE_MUL))
        np.testing.assert_array_equal(session.call("module.simple_mul", a, b).numpy(), a * b)


@pytest.mark.parametrize("name", ["a-b", "a b", "a/b"])
def test_names_that_no_symbol_has_are_told_at_the_function(name: str) -> None:
    with pytest.raises(CompileError, match="x.mlir:1:1: func.func expects a name of letters, digits"):
        compiled(f'func.func @"{name}"(%x: tensor<2xf32>) -> tensor<2xf32> {{\n  return %x : tensor<2xf32>\n}}\n')


@pytest.mark.vulkan
def test_a_layer_has_two_results(opened: pumice.Device) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(LAYER))
        found, total = session.call("layer.main", x, w)
    expected = np.tanh(x @ w + np.array([0.5, -1.0, 2.0], np.float32))
    np.testing.assert_allclose(found.numpy(), expected, 1e-5, 1e-6)
    np.testing.assert_allclose(total.numpy(), expected.sum(1), 1e-5, 1e-5)


@pytest.mark.vulkan
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_loop_whose_length_is_an_argument(opened: pumice.Device, count: int) -> None:
    x = np.ones(4, np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(POWERS))
        for _ in range(2):
            found, steps = session.call("module.main", x, np.int32(count))
            np.testing.assert_allclose(found.numpy(), np.array([1, 2, 3, 4.5]) ** count, 1e-6)
            assert int(np.asarray(steps.numpy() if hasattr(steps, "numpy") else steps)) == count


@pytest.mark.vulkan
@pytest.mark.parametrize(("index", "factor"), [(0, -1), (1, 2), (2, 1), (7, 1), (-1, 1)])
def test_a_case_has_its_last_branch_as_default(opened: pumice.Device, index: int, factor: float) -> None:
    x = np.array([1.5, -2], np.float32)
    with pumice.Session(device=opened) as session:
        session.load(compiled(CHOICE))
        np.testing.assert_array_equal(session.call("module.main", np.int32(index), x).numpy(), x * factor)


@pytest.mark.peer
@pytest.mark.vulkan
def test_the_peers_runtime_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "powers.vmfb"
    path.write_bytes(compiled(POWERS))
    flags = ["--device=vulkan", f"--module={path}", "--function=main", "--input=4xf32=1,1,1,1", "--input=i32=3"]
    run = run_peer("iree-run-module", *flags)
    assert "4xf32=1 8 27 91.125" in run.stdout and "i32=3" in run.stdout


def test_equal_programs_make_equal_files() -> None:
    assert compiled(LAYER) == compiled(LAYER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @f() { return }", "no public function with a body"),
        ("func.func @f() { return }\nfunc.func @f() { return }", "@f is defined twice"),
        ('"x.y"() : () -> ()', "expected functions in a module, got x.y"),
    ],
)
def test_what_is_no_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(text)
