"""A wait source of your own: a program waits for jobs in a ``concurrent.futures`` pool, and no thread blocks meanwhile.

A wait source is any object with ``when_ready(callback)``. Here it is a job in a pool of threads; a module written in
Python returns it to the program that called. ``pool/`` has the program's source, a loop of such calls, and the compiled
module.
"""

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pumice

FOLDER = Path(__file__).parent / "pool"


class Job:
    """Ready when a call in a pool has returned; failed if that raised."""

    def __init__(self, pool: ThreadPoolExecutor, call: Callable[[int], int], argument: int) -> None:
        self.future: Future[int] = pool.submit(call, argument)

    def when_ready(self, callback: Callable[..., None]) -> None:
        """All that a wait source has to have. The callback may come from any thread, and at once."""
        self.future.add_done_callback(lambda future: callback(future.exception()))


def slow_hash(key: int) -> int:
    """Something slow that lets other threads run."""
    if key >= 8:
        raise ValueError(f"there is no key {key}")
    return hashlib.pbkdf2_hmac("sha256", bytes([key]), b"salt", 20_000)[0]


def host_module(pool: ThreadPoolExecutor) -> pumice.NativeModule:
    """The module ``host``, from which the program imports ``find``."""
    module = pumice.NativeModule("host")

    @module.function("find", "0i_i")
    def find(key: int) -> pumice.Wait:
        job = Job(pool, slow_hash, key)

        def resume(error: pumice.PumiceError | None) -> int:
            if error is not None:
                raise error
            return job.future.result()

        return pumice.Wait((job,), resume=resume)  # the invocation is suspended here, the session's thread goes on

    return module


async def main() -> None:
    """Twelve invocations in flight on one session: while they wait they are in the pool, and in no other thread."""
    options = pumice.SessionOptions(concurrent=True)
    with ThreadPoolExecutor(4) as pool, pumice.Session(options=options) as session:
        session.append_module(host_module(pool))
        session.load(FOLDER / "total.vmfb")
        total = session.lookup("total.run")

        totals = await asyncio.gather(*(total.call_async(count % 6) for count in range(12)))
        print("totals:", *totals)
        assert totals == [sum(slow_hash(key) for key in range(count % 6)) for count in range(12)]

        try:
            await total.call_async(9)
        except pumice.UnknownError as error:
            print("as it should be:", error)
        else:
            raise AssertionError("a job that fails is an error of the call")


asyncio.run(main())
