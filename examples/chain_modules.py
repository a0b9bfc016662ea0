"""Two compiled programs chained by fences: the second starts after the first on the GPU; the host waits once.

``chain/`` has their sources and the modules that the IREE compiler makes of them with
``--iree-execution-model=async-external``. Such functions take a fence to wait for and one to signal, and return as soon
as their work is submitted. The fences here are values of one timeline:

    1 the input is there  →  smooth  →  2  →  energy  →  3 the result is there
"""

import asyncio
from pathlib import Path

import numpy as np

import pumice

FOLDER = Path(__file__).parent / "chain"


async def energy_of(session: pumice.Session, samples: np.ndarray) -> float:
    """Smooths the samples and adds up their squares, in two programs and without a wait in between."""
    with session.device.hal.create_semaphore(name="timeline") as timeline:
        given, smoothed, done = (pumice.Fence([(timeline, value)]) for value in (1, 2, 3))
        smooth = await session.call_async("smooth.run", samples, wait=given, signal=smoothed)
        energy = await session.call_async("energy.run", smooth, wait=smoothed, signal=done)

        # Both programs are submitted and both wait: nothing has been written to ``smooth`` and ``energy`` yet.
        assert timeline.query() == 0
        timeline.signal(1)
        await done
        return float(energy.numpy())


async def main() -> None:
    """Several chains at once, each with a timeline of its own."""
    options = pumice.SessionOptions(concurrent=True)
    with pumice.Session(options=options) as session:
        for name in ("smooth", "energy"):
            session.load(FOLDER / f"{name}.vmfb")
        print(session.lookup("smooth.run").signature)
        print(session.lookup("energy.run").signature)

        steps = np.arange(256, dtype=np.float32)
        waves = [np.sin(steps * frequency) for frequency in (0.1, 0.5, 1.0, 2.0)]
        energies = await asyncio.gather(*(energy_of(session, wave) for wave in waves))
        for wave, energy in zip(waves, energies, strict=True):
            expected = np.sum((np.convolve(wave, np.ones(3), "same") / 3) ** 2)
            print(f"{np.sum(wave**2):7.2f} becomes {energy:7.2f}")
            assert np.isclose(energy, expected, rtol=1e-4)


asyncio.run(main())
