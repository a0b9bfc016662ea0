"""HAL code of the corpus, as IREE's compiler compiles it, gives what NumPy gives, and fails as the programs do.

A dozen programs whose host code has control flow, state, calls and scalars; all of them with ``PUMICE_SOAK=1``.
"""

from __future__ import annotations

import pytest
from conformance.program_corpus import check_calls, load_corpus
from support.codegen import hal_code
from support.iree_releases import CompileError
from support.peer import peer_compiler
from support.soak import SOAK

from pumice.hal_vulkan.device import Device

pytestmark = [pytest.mark.peer, pytest.mark.vulkan]

CORPUS = {program.name: program for program in load_corpus()}
CHOSEN = (
    *("async_loop", "async_multi_function", "branch_on_data", "collatz", "collatz_scalar", "dynamic_matmul"),
    *("globals_counter", "globals_initialized", "internal_calls", "scalars", "assertion", "state_machine"),
)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CORPUS if SOAK else CHOSEN)
def test_hal_code_gives_what_numpy_gives(name: str, device: Device) -> None:
    program = CORPUS[name]
    compiler = peer_compiler()
    reason = program.reason_not_compiled(compiler.release)
    if reason is not None:
        pytest.skip(reason)
    if program.parameters:
        pytest.skip("HAL code reads no parameters of files; it refuses them")
    try:
        path = compiler.compile(program.source, program.flags)
    except CompileError as error:
        pytest.fail(str(error))
    with hal_code.hal_program(path.read_bytes(), device) as code:
        check_calls(program, lambda function, *values: tuple(hal_code.call(code, function, values)), tensors=True)
