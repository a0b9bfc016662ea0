"""IREE's own tests of its virtual machine, in assembly: every ``test_*`` must succeed and every ``fail_*`` must fail.

They are read from the tree that ``PUMICE_IREE_TREE`` names, and skipped without one. Each file is assembled twice: by
pumice, and by ``iree-as-module`` where the peer is installed.
"""

from __future__ import annotations

import functools
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from conformance.iree.e2e_tree import VM_FOLDER, named_tree, opened_tree
from support.iree_releases import installed_tool

from pumice.status import PumiceError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context
from pumice.vm.native.module import NativeModule
from pumice.waits.wait_frame import Wait

NO_TREE = "PUMICE_IREE_TREE names no tree of IREE: a checkout or a git directory"


@functools.cache
def sources() -> Mapping[str, str]:
    """The text of every assembly file of the tree, by path."""
    tree = named_tree()
    if tree is None:
        return {}
    with opened_tree(tree) as root:
        paths = sorted((root / VM_FOLDER).rglob("*.vmasm"))
        return {path.relative_to(root / VM_FOLDER).as_posix(): path.read_text() for path in paths}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "path" in metafunc.fixturenames:
        missing = pytest.param(None, marks=pytest.mark.skip(reason=NO_TREE))
        metafunc.parametrize("path", list(sources()) or [missing])


def _by_pumice(path: str, folder: Path) -> bytes:
    return write_module(assemble(sources()[path], file_name=path))


def _by_iree(path: str, folder: Path) -> bytes:
    tool = installed_tool("iree-as-module")
    if tool is None:
        pytest.skip("iree-as-module was not found: install the peer extra")
    source, module = folder / "source.vmasm", folder / "module.vmfb"
    source.write_text(sources()[path])
    subprocess.run([str(tool), f"--output={module}", str(source)], check=True, capture_output=True)
    return module.read_bytes()


def yieldable_test() -> NativeModule:
    """The native module that the yield tests import: each function suspends so many times, then gives its sum."""
    module = NativeModule("yieldable_test")

    def after_yields(count: int, result: int) -> object:
        if count <= 0:
            return result
        return Wait(resume=lambda error: after_yields(count - 1, result))

    @module.function("yield_n", "0ii_i")
    def yield_n(value: int, count: int) -> object:
        return after_yields(count, value + count)

    @module.function("yield_variadic_sum", "0CiDi_i")
    def yield_variadic_sum(values: tuple[int, ...], count: int) -> object:
        return after_yields(count, sum(values) + count)

    return module


@pytest.fixture(params=[_by_pumice, pytest.param(_by_iree, marks=pytest.mark.peer)], ids=["pumice", "iree"])
def module(request: pytest.FixtureRequest, path: str, tmp_path: Path) -> Iterator[BytecodeModule]:
    assembled: Callable[[str, Path], bytes] = request.param
    opened = BytecodeModule.from_bytes(assembled(path, tmp_path), path)
    yield opened
    opened.close()


PASSED: Counter[str] = Counter()
"""Tests of the tree that do as they are named, by the assembler."""


def test_exports_do_as_they_are_named(path: str, module: BytecodeModule, request: pytest.FixtureRequest) -> None:
    wrong: list[str] = []
    names = [export.name for export in module.definition.exports if export.name.startswith(("test_", "fail_"))]
    for name in names:
        # Each in a context of its own: globals that one test stores must not decide another.
        with Context([yieldable_test(), module]) as context:
            function = context.lookup(f"{module.name}.{name}")
            try:
                context.invoke(function, (), timeout=30)
            except PumiceError as error:
                if name.startswith("test_"):
                    wrong.append(f"{name}: {error}")
            else:
                if name.startswith("fail_"):
                    wrong.append(f"{name}: did not fail")
    PASSED[request.node.callspec.id.rpartition("-")[2]] += len(names) - len(wrong)
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(named_tree() is None, reason=NO_TREE)
def test_the_tree_has_them_all() -> None:
    text = "\n".join(sources().values())
    total = text.count("vm.export @test_") + text.count("vm.export @fail_")
    print(*(f"\nassembled by {name}: {count} of {total} do as they are named" for name, count in PASSED.items()))
    assert text.count("vm.export @test_") >= 282
    assert text.count("vm.export @fail_") >= 18
