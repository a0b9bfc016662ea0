"""One side of vm_loop.py in a process of its own: ``python _vm_loop_worker.py pumice|translated|peer|plain LOOP``.

It answers ``run N`` with the seconds of a call of N iterations, and ``first N`` with those of the first call.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from vm_programs import LOOPS, PLAIN, PROGRAM


def _module(loop: str) -> bytes:
    from pumice.vm import write_module
    from pumice.vm.assembly.assembler import assemble

    before, body, _ = LOOPS[loop]
    return write_module(assemble(PROGRAM.format(before=before, body=body)))


def _pumice(loop: str) -> Callable[[int], int]:
    from pumice.vm import BytecodeModule, Context

    context = Context([BytecodeModule.from_bytes(_module(loop))])
    function = context.lookup("loop.run")
    return lambda n: int(context.invoke(function, (n,)))


def _peer(loop: str) -> Callable[[int], int]:
    import iree.runtime as peer

    config = peer.Config("local-sync")
    module = peer.VmModule.copy_buffer(config.vm_instance, _module(loop))
    context = peer.VmContext(config.vm_instance, modules=[module])
    function = module.lookup_function("run")

    def call(n: int) -> int:
        given, taken = peer.VmVariantList(1), peer.VmVariantList(1)
        given.push_int(n)
        context.invoke(function, given, taken)
        return int(taken.get_variant(0))

    return call


def main() -> None:
    side, loop = sys.argv[1:]
    if side == "translated":
        os.environ["PUMICE_MACHINE_CODE"] = "off"
    call = _peer(loop) if side == "peer" else PLAIN[loop] if side == "plain" else _pumice(loop)
    if call(1000) & 0xFFFFFFFF != PLAIN[loop](1000):
        raise SystemExit(f"{side}: wrong result for {loop!r}")
    print("ready", flush=True)
    for line in sys.stdin:
        iterations = int(line.split()[1])
        begin = time.perf_counter()
        call(iterations)
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
