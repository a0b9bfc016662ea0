"""The VM's second tier in tests: forced on, kept off, or with so little fuel that it leaves all the time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from pumice.status import PumiceError
from pumice.vm import BytecodeModule, Context
from pumice.vm.execution import machine_tier
from pumice.vm.execution.module_state import ContextFunction
from pumice.vm.machine_code.settings import Settings

__all__ = ["forced", "has_machine_code", "kept_off", "outcome"]


@contextlib.contextmanager
def forced(*, fuel: int = machine_tier.FUEL, host_stack: int = machine_tier.HOST_STACK) -> Iterator[None]:
    """Whatever can be machine code is, from its first call on."""
    pytest.importorskip("llvmlite", reason="the second tier needs the `jit` extra")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "hot", 0)
        patch.setattr(machine_tier, "FUEL", fuel)
        patch.setattr(machine_tier, "HOST_STACK", host_stack)
        yield


@contextlib.contextmanager
def kept_off() -> Iterator[None]:
    """Nothing becomes machine code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "hot", 1 << 62)
        yield


def has_machine_code(context: Context, name: str) -> bool:
    """Whether a function of a context runs as machine code by now."""
    function = context.lookup(name).bytecode
    assert isinstance(function, ContextFunction)
    return function.tier.is_compiled


def outcome(module: BytecodeModule, name: str, arguments: tuple[object, ...] = (), **options: int) -> object:
    """The results of a function in a context of its own; or its error, with its place and its callers."""
    with Context([module], **options) as context:  # type: ignore[arg-type]
        try:
            return repr(context.invoke(context.lookup(name), arguments, timeout=20))
        except PumiceError as error:
            return type(error), str(error), error.location, getattr(error, "__notes__", None)
