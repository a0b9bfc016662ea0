"""Operations of the VM as Python functions, each run by a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble

__all__ = ["operation"]

_WIDE = ("i64", "f64")


def _registers(kinds: Sequence[str], first: int = 0) -> list[str]:
    """A register for each value; those of 64 bits are pairs that begin at an even number."""
    names = []
    for kind in kinds:
        if kind in _WIDE:
            first += first & 1
            names.append(f"%i{first}:{first + 1}")
        else:
            names.append(f"%i{first}")
        first += 2 if kind in _WIDE else 1
    return names


@cache
def operation(mnemonic: str, operands: str, result: str) -> Callable[..., Any]:
    """A function that runs one operation.

    Args:
        mnemonic: without ``vm.``.
        operands: types of its operands, ``i32``, ``i64``, ``f32`` or ``f64``, separated by spaces.
        result: type of its result.
    """
    kinds = operands.split()
    registers = _registers(kinds)
    (target,) = _registers([result], 10)
    signature = ", ".join(f"{name}: {kind}" for name, kind in zip(registers, kinds, strict=True))
    text = f"""
vm.module @m
vm.export @f
vm.func @f({signature}) -> ({result}) {{
^bb0:
  {target} = vm.{mnemonic} {", ".join(registers)}
  vm.return {target}
}}
"""
    context = Context([BytecodeModule(assemble(text))])
    function = context.lookup("m.f")
    return lambda *values: context.invoke(function, values)
