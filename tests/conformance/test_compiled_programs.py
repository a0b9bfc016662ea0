"""The corpus's programs that pumice compiles itself give what NumPy gives, on Vulkan and on the reference device.

These are the programs of StableHLO, arith, math, tensor, scf, cf and func; those of linalg and of the peer's own
dialects are for the peer's compiler alone.
"""

from __future__ import annotations

import re

import pytest
from conformance.program_corpus import load_corpus, run_program

import pumice

_OTHERS = re.compile(r"\b(linalg|iree_linalg_ext|util|flow|hal|stream)\.")
CORPUS = {program.name: program for program in load_corpus() if not _OTHERS.search(program.source)}
# Lengths that are operands of tensor.extract_slice, of which a kernel would have to be made for each call; an
# assertion, which is a call of the module `check` that `pumice run-checks` brings.
NOT_HERE = {"dynamic_slice", "assertion"}


def test_there_are_many() -> None:
    assert len(CORPUS) - len(NOT_HERE) >= 45


@pytest.mark.sample(10)
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CORPUS.keys() - NOT_HERE))
def test_compiled_programs_give_what_numpy_gives(name: str) -> None:
    program = CORPUS[name]
    module = pumice.compile(program.source, targets=("vulkan", "reference"), file_name=f"{name}.mlir")
    for device in ("vulkan", "reference"):
        run_program(program, module, device, tensors=True)
