"""Which buffers have memory in common."""

from __future__ import annotations

import numpy as np

from pumice.hal.buffer import Buffer, first_overlap
from pumice.hal_reference.device import Device


def test_overlaps_are_found_among_many_as_by_comparing_each_pair() -> None:
    random = np.random.default_rng(5)
    outcomes = set()
    with Device() as device:
        memories = [device.create_buffer(1024) for _ in range(4)]
        for case in range(400):
            count = 3 if case % 2 else 14
            parts = []
            for _ in range(count):
                size = int(random.choice([0, 4, 300 if case % 3 and case % 4 else 64]))
                offset = int(random.integers(0, 1024 - size)) if case % 3 else 70 * len(parts)
                parts.append(random.choice(memories).subspan(offset, size))
            mine = int(random.integers(1, count + 1))
            others: list[Buffer | None] = [*parts[mine:], None]
            expected = {
                (one, two) for one in range(mine) for two in range(one + 1, count) if parts[one].overlaps(parts[two])
            }
            found = first_overlap(parts[:mine], others)
            assert found in expected if expected else found is None
            outcomes.add((count, mine * (count + 1) > 64, bool(expected)))
    assert {(14, True, True), (14, True, False), (3, False, True), (3, False, False)} <= outcomes
