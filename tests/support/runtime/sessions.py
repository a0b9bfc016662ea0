"""Programs in VM assembly for tests of sessions: they fix what passes between caller and program."""

from __future__ import annotations

import numpy as np

import pumice
from pumice.hal_vulkan import BufferView
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.bytecode_module import BytecodeModule


def function(
    name: str,
    declaration: str,
    body: str = "  vm.return %r0",
    arguments: str = "%r0: !hal.buffer_view",
    results: str = "!hal.buffer_view",
) -> str:
    """An exported function in VM assembly, with what a compiler would say of it."""
    attributes = f'attributes {{"iree.abi.declaration" = "{declaration}"}} ' if declaration else ""
    return f"vm.export @{name}\nvm.func @{name}({arguments}) -> ({results}) {attributes}{{\n^bb0:\n{body}\n}}\n"


def identity(kind: str, name: str = "identity") -> str:
    """A function that returns its tensor."""
    return function(name, f"sync func @{name}(%x: tensor<{kind}>) -> (%y: tensor<{kind}>)")


def module(text: str, name: str = "program") -> BytecodeModule:
    return BytecodeModule(assemble(f"vm.module @{name}\n{text}"))


def allocations() -> int:
    return pumice.live_objects().get("allocation", 0)


def elements(session: pumice.Session, view: BufferView) -> np.ndarray:
    """The elements of a dense view on the session's device."""
    data = np.empty(view.byte_length, np.uint8)
    session.device.download(view.buffer.subspan(0, view.byte_length), data)
    return view.element_type.unpack(data.tobytes(), view.shape)


COUNTER = "vm.global.i32 private mutable @count = 0 : i32\n" + function(
    "next",
    "sync func @next() -> (%count: i32)",
    "  %i0 = vm.global.load.i32 @count\n  %i1 = vm.const.i32 1\n  %i0 = vm.add.i32 %i0, %i1\n"
    "  vm.global.store.i32 %i0, @count\n  vm.return %i0",
    "",
    "i32",
)


def with_program(session: pumice.Session, text: str) -> pumice.Session:
    session.append_module(module(text))
    return session


ASYNC = """
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.fence.signal cconv "0r_v"
vm.import @hal.fence.fail cconv "0ri_v"
""" + (
    function(
        "pass",
        "async func @pass(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)",
        """  %i0 = vm.const.i32 -1
  %i2:3 = vm.const.i64.zero
  %r3 = vm.const.ref.zero
  %i1 = vm.cmp.eq.ref %r1, %r3
  vm.cond_br %i1, ^bb2(), ^bb1()
^bb1:
  %i1 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r1)
  vm.cond_br %i1, ^bb3(), ^bb2()
^bb3:
  vm.fail %i1, "the wait failed"
^bb2:
  vm.call @hal.fence.signal(%r2)
  vm.return %r0""",
        "%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence",
    )
    + function(
        "never",
        "async func @never(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)",
        arguments="%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence",
    )
    + function(
        "fails",
        "async func @fails(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)",
        "  %i0 = vm.const.i32 14\n  vm.call @hal.fence.fail(%r2, %i0)\n  vm.return %r0",
        "%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence",
    )
)
