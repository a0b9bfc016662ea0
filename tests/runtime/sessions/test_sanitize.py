"""Sanitised programs: wrong accesses of their executables fail the call, by descriptors and by device addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.peer import compile_module

import pumice
from pumice.hal_vulkan.submit.submission import SubmissionQueue
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import encode
from pumice.spirv.instrument.editor import Editor, opcode_of
from pumice.spirv.instrument.paths import CHAINS
from pumice.spirv.repair import repair as repairs
from pumice.status import OutOfRangeError

pytestmark = pytest.mark.vulkan

PROGRAM = """
func.func @add(%a: tensor<100xf32>, %b: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.add %a, %b : tensor<100xf32>
  return %0 : tensor<100xf32>
}
"""


def shifted(code: bytes | memoryview) -> bytes:
    """A module with 2 to the power of 16 added to the last index of each access chain that computes one."""
    editor = Editor(bytes(code))
    for body in editor.functions:
        types = {one[2]: one[1] for one in body if len(one) > 2}
        changed = []
        for one in body:
            if opcode_of(one) in CHAINS and one[-1] in types:
                kind, index = types[one[-1]], editor.fresh()
                words = (1 << 16,) if editor.defs[kind][2] == 32 else (1 << 16, 0)
                changed.append(encode(Op.IAdd, kind, index, one[-1], editor.constant(kind, *words)))
                one = (*one[:-1], index)
            changed.append(one)
        body[:] = changed
    return editor.code()


def check(module: bytes | Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    x = np.arange(100, dtype=np.float32)
    with pumice.Session(sanitize=True) as session:
        session.load(module)
        np.testing.assert_array_equal(np.asarray(session.lookup("module.add")(x, x)), x + x)
    repaired = repairs.repair
    with monkeypatch.context() as patch, pumice.Session(sanitize=True) as session:
        patch.setenv("PUMICE_CACHE", "0")
        patch.setattr(repairs, "repair", lambda code: shifted(repaired(code)))
        session.load(module)
        for _ in range(2):
            with pytest.raises(OutOfRangeError, match=what):
                np.asarray(session.lookup("module.add")(x, x))
        patch.undo()
        with pumice.Session(session.device) as other:
            other.load(module)
            assert other.device.vulkan.plan.sanitize


def test_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    check(pumice.compile(PROGRAM), monkeypatch, r"add_\w+: element 65\d\d\d of .*, which has 100, is accessed")


@pytest.mark.peer
@pytest.mark.parametrize("abi", [pytest.param("bda", marks=pytest.mark.features("shaderInt64")), "descriptors"])
def test_executables_of_the_peer(monkeypatch: pytest.MonkeyPatch, abi: str) -> None:
    flags = ("--iree-vulkan-dispatch-abi=bda",) if abi == "bda" else ()
    kind = (
        r"bytes at the device address 0x\w+, which no buffer has" if abi == "bda" else r"element \d+ of .*, which has"
    )
    check(compile_module(PROGRAM, *flags, name="sanitized_add.mlir"), monkeypatch, kind)


@pytest.mark.parametrize("sanitize", [False, True])
def test_calls_signal_the_stream_alone_unless_shaders_report(monkeypatch: pytest.MonkeyPatch, sanitize: bool) -> None:
    signals: list[int] = []
    submit = SubmissionQueue.submit

    def counted(self: SubmissionQueue, *arguments: Any, **named: Any) -> int:
        signals.append(len(named["signals"]))
        return submit(self, *arguments, **named)

    x = np.arange(100, dtype=np.float32)
    with pumice.Session(sanitize=sanitize) as session:
        array = session.device.asarray(x)
        session.load(pumice.compile(PROGRAM))
        monkeypatch.setattr(SubmissionQueue, "submit", counted)
        for _ in range(3):
            np.testing.assert_array_equal(session.lookup("module.add")(array, array).numpy(), x + x)
    assert signals == ([1, 1, 1] if sanitize else [])
