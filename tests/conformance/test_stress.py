"""Eight threads, each with its own session on one device, hundreds of calls each of different programs; and as many
sessions from one event loop.

More than 1,500 calls find what goes wrong once in 500 with a probability of 95 %; a soak makes forty times as
many.
"""

from __future__ import annotations

import asyncio
import functools
import threading

import numpy as np
import pytest
from conformance.program_corpus import Program, compile_all, difference, load_corpus
from support.iree_releases import CompileError, Compiler, installed_compiler
from support.soak import rounds

import pumice

pytestmark = [
    pytest.mark.peer,
    pytest.mark.vulkan,
    pytest.mark.skipif(installed_compiler() is None, reason="no iree-compile: install the peer extra"),
]

CALLS = rounds(250, 10_000)
# Small ones, so that calls and not kernels are the stress; one for each thread, of every kind: loops that depend on
# data, asynchronous, several results, scalars, dynamic shapes, reductions. A call of a loop is a dozen round trips to
# the device: with fewer calls they make as many as the others.
SHARES = {
    "simple_mul": 1.0,
    "collatz": 0.08,
    "async_mul": 1.0,
    "many_results": 1.0,
    "scalars": 1.0,
    "dynamic_add": 1.0,
    "reduce_sum": 1.0,
    "newton": 0.25,
}
NAMES = tuple(SHARES)
THREADS = len(NAMES)


@pytest.fixture(scope="module")
def programs() -> dict[str, tuple[Program, bytes]]:
    corpus = {program.name: program for program in load_corpus()}
    compiler = installed_compiler()
    assert isinstance(compiler, Compiler)
    compiled = compile_all([corpus[name] for name in NAMES], compiler)
    made = {}
    for name, path in compiled.items():
        assert not isinstance(path, CompileError), path
        made[name] = (corpus[name], path.read_bytes())
    return made


@functools.cache
def expectations(name: str) -> list[tuple[object, ...]]:
    program = next(one for one in load_corpus() if one.name == name)
    return list(program.expectations())


def check(program: Program, call: int, returned: object) -> None:
    several = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    for got, wanted in zip(several, expectations(program.name)[call], strict=True):
        value = got if isinstance(got, (bool, int, float)) else np.asarray(got)
        said = difference(value, wanted, program.tolerance)
        assert said is None, f"{program.name}: {said}"


def test_eight_threads_with_a_session_each(programs: dict[str, tuple[Program, bytes]]) -> None:
    failures: list[BaseException] = []
    done = [0] * THREADS
    calls = [round(CALLS * share) for share in SHARES.values()]
    start = threading.Barrier(THREADS)

    def work(index: int, device: pumice.Device) -> None:
        try:
            program, data = programs[NAMES[index]]
            with pumice.Session(device) as session:
                session.load(data)
                functions = [session.lookup(f"module.{call.function}") for call in program.calls]
                start.wait(60)
                for step in range(calls[index]):
                    which = step % len(functions)
                    result = functions[which](*program.calls[which].arguments, timeout=120)
                    check(program, which, result)
                    done[index] += 1
        except BaseException as error:
            failures.append(error)
            start.abort()

    with pumice.open_device() as device:
        threads = [threading.Thread(target=work, args=(index, device)) for index in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures
    assert done == calls


def test_one_event_loop_with_eight_sessions(programs: dict[str, tuple[Program, bytes]]) -> None:
    async def caller(session: pumice.Session, program: Program) -> int:
        functions = [session.lookup(f"module.{call.function}") for call in program.calls]
        for step in range(CALLS // 10):
            which = step % len(functions)
            check(program, which, await functions[which].call_async(*program.calls[which].arguments, timeout=120))
        return CALLS // 10

    async def main(device: pumice.Device) -> list[int]:
        sessions = [pumice.Session(device) for _ in NAMES]
        try:
            for session, name in zip(sessions, NAMES, strict=True):
                session.load(programs[name][1])
            return await asyncio.gather(
                *(caller(session, programs[name][0]) for session, name in zip(sessions, NAMES, strict=True))
            )
        finally:
            for session in sessions:
                session.close()

    with pumice.open_device() as device:
        assert asyncio.run(main(device)) == [CALLS // 10] * len(NAMES)
