"""The corpus: every program, compiled by every compiler at hand, gives what NumPy and IREE's own runtime give.

With the installed compiler alone that is one release; ``PUMICE_IREE_COMPILERS`` adds more.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conformance.iree.peer import run_call
from conformance.program_corpus import Program, Value, difference, differences, load_corpus, run_program
from support.devices.features import skipped_if_lacking
from support.iree_releases import LOCAL, CompileError, Compiler, available_compilers, installed_compiler, installed_tool

import pumice

pytestmark = pytest.mark.peer

CORPUS = {program.name: program for program in load_corpus()}
COMPILERS = {compiler.release: compiler for compiler in available_compilers()}
NO_COMPILER = "no iree-compile: install the peer extra, or set PUMICE_IREE_COMPILERS"
# Programs whose functions see what earlier calls left; the peer starts afresh for each.
STATEFUL = {"globals_counter", "state_machine"}


def module_path(release: str, program: Program) -> Path:
    try:
        return COMPILERS[release].compile(program.source, program.flags)
    except CompileError as error:
        pytest.fail(str(error))


def _cases() -> list[object]:
    if not COMPILERS:
        return [pytest.param(None, None, marks=pytest.mark.skip(reason=NO_COMPILER))]
    cases = []
    for release in COMPILERS:
        for name, program in CORPUS.items():
            reason = program.reason_not_compiled(release)
            marks = [pytest.mark.skip(reason=f"{release}: {reason}")] if reason is not None else []
            cases.append(pytest.param(release, name, marks=marks, id=f"{release}-{name}"))
    return cases


@pytest.mark.sample(18)
@pytest.mark.vulkan
@pytest.mark.parametrize(("release", "name"), _cases())
def test_pumice_gives_what_numpy_gives(release: str, name: str) -> None:
    program = CORPUS[name]
    with pumice.open_device() as device, skipped_if_lacking():
        run_program(program, module_path(release, program), device)


@pytest.mark.sample(12)
@pytest.mark.vulkan
@pytest.mark.skipif(installed_compiler() is None or installed_tool("iree-run-module") is None, reason=NO_COMPILER)
@pytest.mark.parametrize("name", [name for name, program in CORPUS.items() if program.peer_device is not None])
def test_the_peer_gives_what_numpy_gives(name: str) -> None:
    program = CORPUS[name]
    compiler = installed_compiler()
    assert isinstance(compiler, Compiler)
    if program.peer_device == "vulkan":
        path = module_path(compiler.release, program)
        with pumice.Session() as session, skipped_if_lacking():  # the peer computes without, and something else
            session.load(path)
    else:
        path = compiler.compile(program.source, program.flags, device=LOCAL)
    assert program.peer_device is not None
    calls = list(zip(program.calls, program.expectations(), strict=True))
    for call, expected in calls[:1] if program.source_name in STATEFUL else calls:
        got = run_call(path, call, expected, device=program.peer_device, parameters=program.parameters)
        assert not differences(program, call.function, got, expected)


def test_every_function_of_every_program_is_called() -> None:
    for program in CORPUS.values():
        exported = {
            line.split("@")[1].split("(")[0] for line in program.source.splitlines() if line.startswith("func.func @")
        }
        assert exported == {call.function for call in program.calls}, program.name


def test_every_source_is_in_the_manifest() -> None:
    sources = {path.stem for path in (Path(__file__).parent / "programs").glob("*.mlir")}
    assert sources == {program.source_name for program in CORPUS.values()}
    assert len(sources) >= 66


@pytest.mark.parametrize(
    ("got", "expected", "differs"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), False),
        (np.float32([1, 2]), np.float32([1, 2.1]), True),
        (np.float32([1, np.nan]), np.float32([1, np.nan]), False),
        (np.float32([1]), np.float32([np.nan]), True),
        (np.float32([1]), np.float64([1]), True),
        (np.float32([[1]]), np.float32([1]), True),
        (np.int32([1, 2]), np.int32([1, 3]), True),
        (np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32), False),
        (1, 1, False),
        (True, 1, False),
        (2, 1, True),
        (1.0000001, 1.0, False),
        (1.1, 1.0, True),
        (np.float32(1), 1.0, True),
    ],
)
def test_difference_finds_what_differs(got: Value, expected: Value, differs: bool) -> None:
    value = np.asarray(got) if isinstance(got, np.generic) else got
    assert (difference(value, expected) is not None) == differs
