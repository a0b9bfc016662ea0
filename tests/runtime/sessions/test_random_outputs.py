"""Random calls with ``out=`` and ``donate=`` on arrays, parts and results, beside the same in NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support.runtime.outputs import compiled

import pumice
from pumice.runtime.arrays.array import DeviceArray
from pumice.status import ClosedError, InvalidArgumentError

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("on_both")]


class Pool:
    """Arrays on the device, each with what it has to hold; parts share the memory of a model, too."""

    def __init__(self, device: pumice.Device, choose: random.Random) -> None:
        self.device = device
        self.choose = choose
        self.arrays: list[tuple[DeviceArray, np.ndarray]] = []

    def new(self) -> None:
        model = np.array([self.choose.uniform(-1, 1) for _ in range(256)], np.float32)
        whole = self.device.asarray(model)
        starts = [self.choose.randrange(253) for _ in range(2)] + [0, 64, 128]
        self.arrays += [(whole[start : start + 4], model[start : start + 4]) for start in starts]
        alone = model[:4].copy()
        self.arrays.append((self.device.asarray(alone), alone))

    def pick(self) -> tuple[DeviceArray, np.ndarray]:
        return self.choose.choice(self.arrays)

    def check(self) -> None:
        for array, model in self.arrays:
            np.testing.assert_array_equal(array.numpy(), model)


@pytest.mark.parametrize("seed", range(3))
def test_random_calls(session: pumice.Session, seed: int) -> None:
    session.load(compiled())
    choose = random.Random(seed)
    pool, blend = Pool(session.device, choose), session.lookup("program.blend")
    pool.new()
    happened = dict.fromkeys(("new", "out", "refused", "donated", "kept", "closed"), 0)
    for step in range(300):
        (a, x), (b, y), (out, z) = pool.pick(), pool.pick(), pool.pick()
        expected = x * np.float32(0.5) + y * np.float32(0.25)
        way = choose.choice(("new", "out", "out", "donated"))
        submitted = choose.random() < 0.2
        call = (lambda *given, **named: blend.submit(*given, **named).result(60)) if submitted else blend
        if way == "new":
            pool.arrays.append((call(a, b), expected))
        elif way == "out":
            shared = np.shares_memory(x, z) or np.shares_memory(y, z)
            if shared:
                with pytest.raises(InvalidArgumentError, match="shares memory with argument"):
                    call(a, b, out=out)
                way = "refused"
            else:
                assert call(a, b, out=out) is out
                z[:] = expected
        elif x.base is not None or np.shares_memory(x, y):
            with pytest.raises(InvalidArgumentError, match="cannot donate argument 0"):
                call(a, b, donate=0)
            way = "kept"
        else:
            result = call(a, b, donate=0)
            with pytest.raises(ClosedError, match="was donated to program.blend as argument 0"):
                a.numpy()
            pool.arrays = [one for one in pool.arrays if not np.shares_memory(one[1], x)]
            pool.arrays.append((result, expected))
        happened[way] += 1
        if len(pool.arrays) > 12:
            array, model = pool.arrays.pop(choose.randrange(len(pool.arrays)))
            if choose.random() < 0.3 and model.base is None:
                array.close()
                happened["closed"] += 1
        if len(pool.arrays) < 6:
            pool.new()
        if step % 20 == 0:
            pool.check()
    pool.check()
    assert all(happened.values()), happened
