"""Random programs give what the virtual machine gives, as HAL code and in C: operations, loops, calls, lists, bytes.

They need no device; programs that read registers as other types than were written are refused, and counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.codegen import c_programs, hal_code
from support.soak import rounds
from support.vm.random_programs import Shape, random_program

from pumice.hal_reference.device import Device
from pumice.status import UnimplementedError
from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module

SHAPES = {
    "structured": Shape(functions=1),
    "random": Shape(graph="random", functions=1),
    "reused": Shape(slots="reused", functions=2),
    "long": Shape(slots="reused", graph="random", functions=1, size=14),
}
ROUNDS = rounds(16, 400)


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_random_programs_give_the_same(shape: str) -> None:
    refused = []
    with Device() as device:
        for seed in range(ROUNDS):
            definition = assemble(random_program(seed, SHAPES[shape]))
            context = Context([BytecodeModule(definition)])
            expected = context.invoke(context.lookup("random.main"), ())
            try:
                program = hal_code.hal_program(write_module(definition), device)
            except UnimplementedError as error:
                refused.append(error.message)
                continue
            with program:
                assert program.main() == expected, f"seed {seed}"
    assert len(refused) < ROUNDS * 0.75
    assert all(
        "as another type" in one or "global.load.indirect" in one or "global.store.indirect" in one for one in refused
    )


@pytest.mark.vulkan  # C programs open a device before they run
@pytest.mark.skipif(bool(c_programs.CANNOT_BUILD), reason=c_programs.CANNOT_BUILD)
def test_random_programs_give_the_same_in_c(tmp_path: Path) -> None:
    built = 0
    for seed in range(rounds(15, 200)):
        definition = assemble(c_programs.with_declarations(random_program(seed, SHAPES["random"])))
        context = Context([BytecodeModule(definition)])
        try:
            # Code that compares a number with itself is not what a compiler writes.
            program = c_programs.build(tmp_path, write_module(definition), flags=("-O0", "-Wno-tautological-compare"))
        except UnimplementedError:
            continue
        built += 1
        found = c_programs.run(program, (), "main")
        assert [int(one) for one in found] == list(context.invoke(context.lookup("random.main"), ())), f"seed {seed}"
    assert built > 5
