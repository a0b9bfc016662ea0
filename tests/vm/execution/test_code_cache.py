"""Modules that were loaded before run from what is kept of them, as they ran the first time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.vm import random_programs

from pumice.base import cache
from pumice.status import InvalidArgumentError, PumiceError
from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution import bytecode_module
from pumice.vm.execution.code_cache import CodeCache
from pumice.vm.execution.frame import Frame

FAILING = """
vm.module @program
vm.export @divide
vm.func @divide(%i0: i32, %i1: i32) -> (i32) {
^bb0:
  %i2 = vm.div.i32.s %i0, %i1
  vm.return %i2
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PUMICE_CACHE", raising=False)
    cache._found_place.cache_clear()
    yield
    cache._found_place.cache_clear()


def module_file(folder: Path, text: str) -> Path:
    path = folder / "program.vmfb"
    path.write_bytes(write_module(assemble(text)))
    return path


def is_verified_here(module: BytecodeModule) -> bool:
    return "verified" in vars(module)


def outcomes(module: BytecodeModule, *, named: bool = True) -> list[object]:
    """Steps every function of a module; returns results and the frames at each suspension."""
    results: list[object] = []
    with Context([module]) as context:
        for function in context.functions(module.name):
            if function.convention.arguments:
                continue
            stack = context.stack_for(function, ())
            try:
                while not stack.step():
                    frames = [frame for frame in stack.frames if isinstance(frame, Frame)]
                    results.append([(frame.pc, repr(frame.register_values) if named else "") for frame in frames])
                results.append(repr(stack.results))
            except PumiceError as error:
                results.append((str(error), error.location))
    return results


@pytest.mark.parametrize("seed", range(2))
def test_kept_code_does_what_it_did(tmp_path: Path, seed: int) -> None:
    shape = random_programs.Shape(slots="mixed", size=12, yields=True, functions=5)
    path = module_file(tmp_path, random_programs.random_program(seed, shape))
    first, second = BytecodeModule.open(path), BytecodeModule.open(path)
    assert is_verified_here(first) and not is_verified_here(second)
    expected = outcomes(first)
    assert expected and outcomes(second) == expected, "by what the first one kept, or in part"
    third = BytecodeModule.open(path)
    assert len(outcomes(third, named=False)) == len(expected)
    translations = third._translations.values()
    assert translations and not any("_translator" in vars(translation) for translation in translations)
    for module in (first, second, third):
        module.close()


def test_failures_are_told_with_their_place(tmp_path: Path) -> None:
    path = module_file(tmp_path, FAILING)
    said = []
    for _ in range(2):
        module = BytecodeModule.open(path)
        with Context([module]) as context, pytest.raises(PumiceError) as failure:
            context.invoke(context.lookup("program.divide"), (1, 0))
        said.append((str(failure.value), failure.value.location))
        module.close()
    assert said[0] == said[1] and "program.divide pc" in str(said[0][1])


def test_another_content_is_another_module(tmp_path: Path) -> None:
    path = module_file(tmp_path, FAILING)
    data = path.read_bytes()
    BytecodeModule.open(path).close()
    wrong = 0
    for address in range(64, len(data), 7):
        path.write_bytes(data[:address] + bytes([data[address] ^ 0x55]) + data[address + 1 :])
        try:
            module = BytecodeModule.open(path)
        except PumiceError:
            wrong += 1
            continue
        assert is_verified_here(module)
        module.close()
    assert wrong, "and verified before it runs"


def test_what_breaks_a_rule_is_refused_each_time(tmp_path: Path) -> None:
    path = module_file(tmp_path, FAILING)
    data = bytearray(path.read_bytes())
    definition = assemble(FAILING)
    at = bytes(data).index(bytes(definition.bytecode[:8]))
    data[at + 3] = 0xFF
    path.write_bytes(data)
    for _ in range(2):
        with pytest.raises(InvalidArgumentError):
            BytecodeModule.open(path)


def test_large_modules_and_those_in_memory_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = module_file(tmp_path, FAILING)
    for _ in range(2):
        assert is_verified_here(BytecodeModule.from_bytes(path.read_bytes()))
    monkeypatch.setattr(bytecode_module, "MAX_CONTENT_BYTES", 10)
    for _ in range(2):
        module = BytecodeModule.open(path)
        assert is_verified_here(module)
        module.close()
    assert cache.usage() == []


def test_code_of_another_python_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = CodeCache(b"module")
    kept.keep_verdict()
    assert CodeCache(b"module").is_verified() and not CodeCache(b"modul").is_verified()
    monkeypatch.setattr("pumice.vm.execution.code_cache._made_by", lambda: ("another",))
    assert not CodeCache(b"module").is_verified() and CodeCache(b"module").load((0, [], 0), "<f>") is None
