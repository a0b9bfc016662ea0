"""Random programs give the same as HAL code as by the virtual machine: operations, loops, tables, calls, lists, bytes.

They need no device; programs that read registers as other types than were written are refused, and counted.
"""

from __future__ import annotations

import pytest
from support import hal_code
from support.random_programs import Shape, random_program
from support.soak import rounds

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
