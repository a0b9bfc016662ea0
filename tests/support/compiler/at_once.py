"""Every way into the compiler at once, in a process that has used none before: tables are filled by threads that race.

    python tests/support/compiler/at_once.py SEED COUNT

runs COUNT jobs in each of eight threads that switch every microsecond. The exit status is 1 if a job raises, or gives
another result than the same job alone.
"""

from __future__ import annotations

import collections
import random
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pumice

PROGRAM = """
func.func @main(%x: tensor<{s}x{t}>, %w: tensor<{s}x{t}>) -> (tensor<{s}x{t}>, tensor<{n}x{t}>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %z = stablehlo.constant dense<0> : tensor<{t}>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<{s}x{t}>, tensor<{t}>) -> tensor<{n}x{t}>
  %2:2 = stablehlo.while(%i = %c, %v = %w) : tensor<i32>, tensor<{s}x{t}>
   cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %p : tensor<i1> }
   do { %q = stablehlo.add %i, %c1 : tensor<i32>
     %vv = stablehlo.add %v, %x : tensor<{s}x{t}>
     stablehlo.return %q, %vv : tensor<i32>, tensor<{s}x{t}> }
  return %2#1, %1 : tensor<{s}x{t}>, tensor<{n}x{t}>
}
"""
SHADERS = sorted(Path(pumice.__file__).parent.glob("shaders/**/*.spv"))
THREADS = 8


def _module(size: int, type: str, *targets: str) -> bytes:
    text = PROGRAM.replace("{s}", f"{size}x{size + 1}").replace("{n}", str(size)).replace("{t}", type)
    return pumice.compile(text, targets=targets)


def compiled(size: int) -> bytes:
    return _module(size, ("f32", "i32", "i8", "bf16", "f64")[size % 5], "vulkan", "reference")


def in_c(size: int) -> bytes:
    from pumice.codegen.c import write_c
    from pumice.vm.bytecode.archive import ModuleArchive
    from pumice.vm.bytecode.reader import read_module

    with ModuleArchive.from_bytes(_module(size, "f32", "vulkan"), "x.vmfb") as archive:
        return b"".join(write_c(read_module(archive), "x", "x.vmfb", main=True).values())


def on_the_hal(size: int) -> bytes:
    from pumice.codegen.hal.module_writer import write_hal
    from pumice.vm.bytecode.archive import ModuleArchive
    from pumice.vm.bytecode.reader import read_module

    with ModuleArchive.from_bytes(_module(size, "f32", "vulkan"), "x.vmfb") as archive:
        return write_hal(read_module(archive), "x.vmfb").source.encode()


def as_assembly(size: int) -> bytes:
    from pumice.vm.assembly.assembler import assemble
    from pumice.vm.assembly.disassembler import disassemble_module
    from pumice.vm.bytecode.archive import ModuleArchive
    from pumice.vm.bytecode.reader import read_module
    from pumice.vm.bytecode.verifier import verify_module
    from pumice.vm.bytecode.writer import write_module

    with ModuleArchive.from_bytes(compiled(size), "x.vmfb") as archive:
        text = disassemble_module(verify_module(read_module(archive)))
    return text.encode() + write_module(assemble(text))


def shader(size: int) -> bytes:
    from pumice.spirv.instrument.passes import instrument
    from pumice.spirv.reflection.reflect import reflect
    from pumice.spirv.repair.repair import repair

    code = SHADERS[size % len(SHADERS)].read_bytes()
    return repair(code) + repr((reflect(code), instrument(code, guard=True))).encode()


def called(size: int) -> bytes:
    with pumice.Session(device="reference") as session:
        session.load(_module(size, "f32", "reference"))
        ones = np.ones((size, size + 1), np.float32)
        return b"".join(result.numpy().tobytes() for result in session.call("module.main", ones, ones))


JOBS: tuple[Callable[[int], bytes], ...] = (compiled, in_c, on_the_hal, as_assembly, shader, called)


def main(seed: int, count: int) -> int:
    """Runs the jobs, and prints what went wrong."""
    sys.setswitchinterval(1e-6)
    results: dict[tuple[Callable[[int], bytes], int], list[bytes]] = collections.defaultdict(list)
    wrong: list[str] = []
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        barrier.wait()
        for _ in range(count):
            job, size = rng.choice(JOBS), rng.randrange(3, 9)
            try:
                results[job, size].append(job(size))
            except BaseException:
                wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (job, size), found in results.items():
        alone = job(size)
        wrong += [f"{job.__name__}({size}) differs from what it gives alone"] * any(one != alone for one in found)
    print(f"seed {seed}: {sum(map(len, results.values()))} jobs, {len(wrong)} wrong", *wrong[:3], sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
