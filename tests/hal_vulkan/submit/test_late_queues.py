"""Several queues whose work comes late and out of order: every result, callback and lifetime stays right."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.fault_runs import Kept
from support.devices.fault_workloads import WORKLOADS
from support.devices.late_queues import LateQueues, make_late
from support.devices.shader_tools import needs_compiler
from support.soak import SEED, rounds
from support.waiting import until

from pumice.hal.memory import MemoryTypeFlags
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance import driver as drivers
from pumice.hal_vulkan.instance.driver import close_drivers
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.status import PumiceError

pytestmark = pytest.mark.vulkan
HOST = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_LOCAL
QUEUES = 4
WORDS = 64
MARKS = {"images": [needs_compiler]}


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateQueues]:
    """Late queues, of a driver of the test's own."""
    late = make_late(monkeypatch, QUEUES, seed=int(SEED))
    monkeypatch.setattr(drivers, "_shared", {})
    yield late
    close_drivers()
    assert late.errors == []


def _open() -> Device:
    return Device(options=PlanOptions(max_compute_queues=QUEUES))


def test_random_graphs_over_queues(late: LateQueues) -> None:
    """Each node of a graph adds words of earlier nodes on some queue, after the nodes that it reads from."""
    for seed in range(rounds(3, 100)):
        chance = random.Random(f"{SEED} {seed}")
        with _open() as device:
            assert len(device.queues) == QUEUES + 1
            expected: list[np.ndarray] = []
            buffers, semaphores = [], []
            told: list[PumiceError | None] = []
            gate = device.create_semaphore()
            order = list(range(24))
            chance.shuffle(order)  # payloads of each semaphore come in order, work of different ones in any
            for node in range(24):
                buffer, done = device.create_buffer(4 * WORDS, memory_type=HOST), device.create_semaphore()
                queue = chance.choice(device.queues[:QUEUES])
                sources = chance.sample(range(node), min(node, chance.randrange(4)))
                words = np.full(WORDS, node + 1, np.uint32)
                commands = device.create_command_buffer(one_shot=True, name=f"node {node}").begin()
                commands.fill(buffer, (node + 1).to_bytes(4, "little"))
                for place, source in enumerate(sources):
                    commands.execution_barrier()
                    start, size = 8 * place, 8 + 4 * chance.randrange(4)
                    commands.copy(buffers[source], buffer, size, source_offset=start, target_offset=start)
                    words[start // 4 : (start + size) // 4] = expected[source][start // 4 : (start + size) // 4]
                waits = [(semaphores[source], 1) for source in sources]
                if not waits and chance.random() < 0.5:
                    waits = [(gate, 1)]
                if sources and chance.random() < 0.3:
                    device.transfer_queue.copy(buffers[sources[0]], buffer, waits=waits, signals=[(done, 1)])
                    words = expected[sources[0]]
                else:
                    queue.submit([commands.end()], waits=waits, signals=[(done, 1)])
                commands.close()
                done.notify(1, told.append)
                buffers.append(buffer)
                semaphores.append(done)
                expected.append(words)
            gate.signal(1)
            for node in order:
                semaphores[node].wait(1, 20)
                np.testing.assert_array_equal(np.frombuffer(buffers[node].read(), np.uint32), expected[node])
                buffers[node].close()
                semaphores[node].close()
            until(lambda: len(told) == 24)
            assert told == [None] * 24
    assert late.overtaken


def test_closing_while_late_queues_work(late: LateQueues) -> None:
    for _ in range(rounds(3, 100)):
        with _open() as device:
            never, last = device.create_semaphore(), device.create_semaphore()
            for index, queue in enumerate(device.queues[:QUEUES] * 3):
                with device.create_buffer(1 << 16) as buffer:
                    queue.fill(buffer, bytes([index]), signals=[(device.create_semaphore(), 1)])
            device.queues[1].barrier(waits=[(never, 1)], signals=[(last, 1)])


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, [])) for name in WORKLOADS])
def test_workloads(late: LateQueues, name: str) -> None:
    for _ in range(rounds(2, 20)):
        kept = Kept()
        try:
            WORKLOADS[name](kept)
            WORKLOADS[name](kept)
        finally:
            kept.close()
