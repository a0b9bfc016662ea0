"""Random programs give the same whatever way they are translated, and the same as in the peer's VM."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.peer import run_peer
from support.soak import rounds
from support.vm import random_programs

from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context
from pumice.vm.translation.analysis import FunctionAnalysis
from pumice.vm.translation.module_analysis import ModuleAnalysis
from pumice.vm.translation.translator import Translator

SHAPES = {
    f"{slots} {graph}{' yields' if yields else ''}": random_programs.Shape(
        slots=slots, graph=graph, size=14, yields=yields, functions=5
    )
    for slots in ("typed", "reused", "mixed")
    for graph, yields in (("structured", False), ("structured", True), ("random", False), ("random", True))
}


def results(text: str) -> object:
    with Context([BytecodeModule(assemble(text))]) as context:
        return context.invoke(context.lookup("random.main"), (), timeout=60)


@functools.cache
def program_and_results(seed: int, shape: str) -> tuple[str, object]:
    text = random_programs.random_program(seed, SHAPES[shape])
    return text, results(text)


def _as_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FunctionAnalysis, "_compute_types", lambda self: None)


def _as_dispatch_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Translator, "_structured", lambda self, entry: None)


def _calling_all_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModuleAnalysis, "leaves", frozenset())


@pytest.mark.sample(12)
@pytest.mark.slow
@pytest.mark.parametrize("other", [_as_bits, _as_dispatch_loops, _calling_all_leaves])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(rounds(1, 10)))
def test_a_program_is_the_same_however_it_is_translated(
    seed: int, shape: str, other: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, expected = program_and_results(seed, shape)
    other(monkeypatch)
    assert results(text) == expected


@pytest.mark.sample(12)
@pytest.mark.peer
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(100, 103))
def test_a_program_gives_what_the_peer_gives(seed: int, shape: str, tmp_path: Path) -> None:
    text = random_programs.random_program(seed, SHAPES[shape])
    path = tmp_path / "random.vmfb"
    path.write_bytes(write_module(assemble(random_programs.without_yields(text))))
    done = run_peer("iree-run-module", f"--module={path}", "--function=main")
    expected = tuple(int(word) for word in re.findall(r"^result\[\d+\]: i64=(-?\d+)$", done.stdout, re.MULTILINE))
    assert expected
    assert results(text) == expected
