"""A program that calls the host, and contexts of it: for tests of how invocations suspend, wait and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pumice.status import PumiceError
from pumice.vm import BytecodeModule, Context, NativeModule
from pumice.vm.assembly.assembler import assemble

__all__ = ["context_of", "outcome"]

PROGRAM = """
vm.module @program
vm.import @host.call cconv "0i_i"
vm.import @host.keep cconv "0r_r"
vm.export @call
vm.export @call_yieldable
vm.export @twice
vm.export @calls_for_ever
vm.export @recurses_for_ever
vm.export @loop
vm.export @call_and_loop
vm.export @yields_once
vm.export @yields_twice
vm.export @yields_for_ever
vm.export @echo
vm.export @fails
vm.export @long
vm.export @nothing
vm.func @call(%i0: i32) -> (i32) {
  %i1 = vm.call @host.call(%i0)
  vm.return %i1
}
vm.func @call_yieldable(%i0: i32) -> (i32) {
  vm.call.yieldable @host.call(%i0) -> ^bb1(%i1)
^bb1:
  vm.return %i1
}
vm.func @twice(%i0: i32) -> (i32) {
  %i1 = vm.call @host.call(%i0)
  %i2 = vm.call @host.call(%i1)
  vm.return %i2
}
vm.func @calls_for_ever(%i0: i32) -> (i32) {
  vm.br ^bb1()
^bb1:
  %i1 = vm.call @host.call(%i0)
  vm.br ^bb1()
}
vm.func @recurses_for_ever(%i0: i32) -> (i32) {
  vm.br ^bb1()
^bb1:
  %i1 = vm.call @twice(%i0)
  vm.br ^bb1()
}
vm.func @loop(%i0: i32) -> (i32) {
  vm.br ^bb1()
^bb1:
  %i0 = vm.add.i32 %i0, %i0
  vm.br ^bb1()
}
vm.func @call_and_loop(%i0: i32) -> (i32) {
  %i1 = vm.call @host.call(%i0)
  vm.br ^bb1()
^bb1:
  %i0 = vm.add.i32 %i0, %i0
  vm.br ^bb1()
}
vm.func @yields_once(%i0: i32) -> (i32) {
  vm.yield ^bb1()
^bb1:
  vm.return %i0
}
vm.func @yields_twice(%i0: i32) -> (i32) {
  vm.yield ^bb1()
^bb1:
  vm.yield ^bb2()
^bb2:
  vm.return %i0
}
vm.func @yields_for_ever(%i0: i32) -> (i32) {
  vm.br ^bb1()
^bb1:
  vm.yield ^bb1()
}
vm.func @echo(%i0: i32, %r0: !vm.buffer) -> (i32, !vm.buffer) {
  vm.return %i0, %r0
}
vm.func @nothing() -> () {
  vm.return
}
vm.func @fails(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 0
  %i2 = vm.div.i32.s %i0, %i1
  vm.return %i2
}
vm.func @long(%r0: !vm.buffer) -> (!vm.buffer) {
  %r1 = vm.call @host.keep(%r0)
  vm.yield ^bb1()
^bb1:
  %r2 = vm.call @middle(%r1)
  vm.yield ^bb2()
^bb2:
  %r3 = vm.call @host.keep(%r2)
  vm.return %r3
}
vm.func @middle(%r0: !vm.buffer) -> (!vm.buffer) {
  vm.yield ^bb1()
^bb1:
  %r1 = vm.call @inner(%r0)
  %r2 = vm.call @host.keep(%r1)
  vm.return %r2
}
vm.func @inner(%r0: !vm.buffer) -> (!vm.buffer) {
  %r1 = vm.call @host.keep(%r0)
  vm.call.yieldable @host.keep(%r1) -> ^bb1(%r2)
^bb1:
  vm.return %r2
}
"""


def context_of(
    call: Callable[[int], object] | None = None, keep: Callable[[object], object] | None = None, **options: Any
) -> Context:
    """A context whose program calls ``call`` and ``keep`` as functions of the module ``host``."""
    host = NativeModule("host", trusted=options.pop("trusted", False))
    host.function("call", "0i_i")(call or (lambda value: value))
    host.function("keep", "0r_r")(keep or (lambda value: value))
    return Context([host, BytecodeModule(assemble(PROGRAM))], **options)


def outcome(error: PumiceError | None) -> int:
    """A result that says what ``resume`` was told: 0 for nothing, else the status code."""
    return 0 if error is None else int(error.code)
