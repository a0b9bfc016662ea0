"""Functions of ``pumice.jit`` called from several threads and coroutines at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pumice

jax = pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")
jnp = jax.numpy

pytestmark = pytest.mark.vulkan


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs ``work(i)`` in threads that begin together; fails with what the first of them failed with."""
    gate = threading.Barrier(count)

    def run(index: int) -> None:
        gate.wait(20)
        work(index)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, range(count)))


def test_threads_that_call_first_at_once_compile_once() -> None:
    with pumice.open_device() as device:
        function = pumice.jit(lambda x, n: (x * n).sum(), device=device)
        x = np.arange(10, dtype=np.float32)

        def work(index: int) -> None:
            for n in range(20):
                assert float(function(x, float(index + n))) == 45 * (index + n)

        in_threads(6, work)
        assert function.cache_info().misses == 1
        function.clear_cache()


def test_programs_that_leave_the_cache_while_others_call_them(device: pumice.Device) -> None:
    function = pumice.jit(lambda x: jnp.cumsum(x) * 2, device=device, cache_size=1)

    def work(index: int) -> None:
        for step in range(12):
            x = np.arange(1 + (index + step) % 3, dtype=np.float32)
            np.testing.assert_array_equal(function(x).numpy(), np.cumsum(x) * 2)

    in_threads(3, work)
    assert function.cache_info().currsize == 1
    function.clear_cache()
    assert function.cache_info() == (0, 0, 1, 0)


def test_threads_with_functions_of_their_own_share_the_device() -> None:
    with pumice.open_device() as device:

        def work(index: int) -> None:
            function = pumice.jit(lambda x: x + index, device=device)
            y = jnp.zeros(5)
            for _ in range(10):
                y = function(y)
            np.testing.assert_array_equal(y.numpy(), np.full(5, 10 * index, np.float32))
            function.clear_cache()

        in_threads(4, work)


def test_coroutines_overlap(device: pumice.Device) -> None:
    function = pumice.jit(lambda p, n: {"y": p["x"] @ p["x"] * n}, device=device)

    async def main() -> None:
        x = np.arange(4, dtype=np.float32)
        results = await asyncio.gather(*(function.call_async({"x": x}, n) for n in range(20)))
        assert [result["y"].item() for result in results] == [14.0 * n for n in range(20)]
        assert function.cache_info().misses == 1

    asyncio.run(main())
    function.clear_cache()


def test_a_coroutine_that_is_cancelled_leaves_the_function_usable() -> None:
    def slow(x: object, n: object) -> object:
        return jax.lax.fori_loop(0, n, lambda i, c: jnp.sin(c @ c), x)

    with pumice.open_device() as device:
        function = pumice.jit(slow, device=device)
        x = np.eye(16, dtype=np.float32)

        async def main() -> None:
            await function.call_async(x, 2)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(function.call_async(x, 1_000_000), 0.3)
            found = await function.call_async(x, 2)
            np.testing.assert_allclose(found.numpy(), np.sin(np.sin(np.eye(16)) @ np.sin(np.eye(16))), 1e-5)

        asyncio.run(main())
        function.clear_cache()
