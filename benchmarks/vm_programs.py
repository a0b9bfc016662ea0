"""The scalar loops of vm_loop.py, in VM assembly and in Python. No benchmark."""

from __future__ import annotations

import struct
from collections.abc import Callable

LOOPS = {
    # name: registers set before, body, operations a turn
    "add and compare": ("", "  %i6 = vm.add.i32 %i6, %i5", 3),
    "linear congruence": (
        "  %i2 = vm.const.i32 1664525\n  %i3 = vm.const.i32 1013904223",
        "  %i6 = vm.mul.i32 %i6, %i2\n  %i6 = vm.add.i32 %i6, %i3",
        4,
    ),
    "bits": (
        "  %i2 = vm.const.i32 13\n  %i3 = vm.const.i32 17\n  %i4 = vm.const.i32 5",
        "  %i7 = vm.shl.i32 %i6, %i2\n  %i6 = vm.xor.i32 %i6, %i7\n"
        "  %i7 = vm.shr.i32.u %i6, %i3\n  %i6 = vm.xor.i32 %i6, %i7\n"
        "  %i7 = vm.shl.i32 %i6, %i4\n  %i6 = vm.xor.i32 %i6, %i7",
        8,
    ),
    "floats": (
        "  %i12 = vm.const.f32 3.0\n  %i13 = vm.const.f32 0.5\n  %i14 = vm.const.f32 1.0",
        "  %i12 = vm.mul.f32 %i12, %i13\n  %i12 = vm.add.f32 %i12, %i14\n  %i6 = vm.bitcast.f32.i32 %i12",
        5,
    ),
    "buffer loads": (
        "  %r0 = vm.const.ref.rodata 0\n  %i2 = vm.const.i32 7",
        "  %i7 = vm.and.i32 %i5, %i2\n  %i10:11 = vm.ext.i32.i64.u %i7\n"
        "  %i7 = vm.buffer.load.i32 %r0, %i10:11\n  %i6 = vm.xor.i32 %i6, %i7\n  %i6 = vm.add.i32 %i6, %i5",
        7,
    ),
    "calls": ("", "  %i6 = vm.call @step(%i6, %i5)", 5),
}
RODATA = bytes(range(1, 33))
PROGRAM = f"""vm.module @loop version 0
vm.type !vm.buffer
vm.rodata[0] = {RODATA.hex()}
vm.export @run
vm.func @run(%i0: i32) -> (i32) {{{{
^bb0:
  %i1 = vm.const.i32 1
{{before}}
  %i5 = vm.const.i32 0
  %i6 = vm.const.i32 1
  vm.br ^bb1()
^bb1:
  %i8 = vm.cmp.lt.i32.s %i5, %i0
  vm.cond_br %i8, ^bb2(), ^bb3()
^bb2:
{{body}}
  %i5 = vm.add.i32 %i5, %i1
  vm.br ^bb1()
^bb3:
  vm.return %i6
}}}}
vm.func @step(%i0: i32, %i1: i32) -> (i32) {{{{
^bb0:
  %i2 = vm.const.i32 5
  %i3 = vm.mul.i32 %i0, %i2
  %i3 = vm.add.i32 %i3, %i1
  vm.return %i3
}}}}
"""


def plain_add(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x = (x + i) & 0xFFFFFFFF
        i += 1
    return x


def plain_congruence(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        i += 1
    return x


def plain_bits(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        i += 1
    return x


def plain_floats(n: int) -> int:
    """Rounds to f32 at the end only; after some turns the value stays at 2."""
    i, x = 0, 3.0
    while i < n:
        x = x * 0.5 + 1.0
        i += 1
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def plain_loads(n: int) -> int:
    data = memoryview(RODATA).cast("i")
    i, x = 0, 1
    while i < n:
        x = ((x ^ data[i & 7]) + i) & 0xFFFFFFFF
        i += 1
    return x


def _step(x: int, i: int) -> int:
    return (x * 5 + i) & 0xFFFFFFFF


def plain_calls(n: int) -> int:
    i, x = 0, 1
    while i < n:
        x = _step(x, i)
        i += 1
    return x


PLAIN: dict[str, Callable[[int], int]] = {
    "add and compare": plain_add,
    "linear congruence": plain_congruence,
    "bits": plain_bits,
    "floats": plain_floats,
    "buffer loads": plain_loads,
    "calls": plain_calls,
}
