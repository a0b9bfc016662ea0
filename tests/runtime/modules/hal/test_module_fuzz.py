"""Whatever a module passes to the HAL exports, they raise a PumiceError or do their work; the device stays usable."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.runtime.hal_module import (
    DEVICE_LOCAL,
    F32,
    HOST_LOCAL,
    USAGE,
    array_of,
    buffer_of,
    direct,
    executable,
    executable_blob,
    multiply_commands,
    vm,
    wait_for,
)

from pumice.hal_vulkan import Device, Fence
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.vulkan.results import take_validation_errors
from pumice.runtime.modules.hal.module import Channel, Event, HalState, hal_module
from pumice.status import PumiceError
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.types.list import VmList

pytestmark = pytest.mark.vulkan

EXPORTS = [
    tuple(line.split("\t")[:2])
    for line in (Path(__file__).parent / "hal_exports.tsv").read_text().splitlines()[1:]
    if line
]
I32 = (-(2**31), 2**31 - 1, -1, 0, 1, 2, 3, 4, 7, 31, 64, HOST_LOCAL, DEVICE_LOCAL, USAGE, F32)
I64 = (-(2**63), 2**63 - 1, 2**31, -(2**31), 2**40, -2, -1, 0, 1, 2, 3, 4, 5, 16, 64, 255, 256, 257, HOST_LOCAL)
TAME = (0, 1, 4, 64)
# What an argument of this name is to be, where it is a reference.
ROLES = {
    "device": "device",
    "allocator": "allocator",
    "commands": "commands",
    "executable": "executable",
    "file": "file",
    "fence": "fence",
    "wait": "fence",
    "view": "view",
    "message": "text",
    "label": "text",
    "name": "text",
    "category": "text",
    "key": "text",
    "executable_format": "text",
    "data": "text",
    "constants": "text",
}
# Arguments of exports whose signature does not name them.
UNNAMED = {
    "device.queue.read": ("file",),
    "device.queue.write": ("buffer", "offset", "file"),
    "executable.create": ("data",) * 4,
    "fence.join": ("fences",) * 2,
}
CALLS = 100
WRONG = (object(), VmList("any"), Channel(), 1 << 70, "text")


class Objects:
    """References of every kind, some of which earlier calls have used up; made anew now and then."""

    def __init__(self, state: HalState, device: Device, choose: random.Random) -> None:
        self.state = state
        self.device = device
        self.choose = choose
        self.tame = False  # whether to pass what is likely to be taken
        self.renew()

    def renew(self) -> None:
        state, device = self.state, self.device
        a = buffer_of(state, device, np.arange(64, dtype=np.float32))
        b = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 256)
        closed = state.queue_alloca(device, -1, None, None, 0, DEVICE_LOCAL, USAGE, 64)
        closed.close()
        recording = state.command_buffer_create(device, 1, 3, -1, 0)
        slots = state.command_buffer_create(device, 0, 3, -1, 2)
        ended = state.command_buffer_create(device, 1, 3, -1, 0)
        state.command_buffer_dispatch(ended, executable(state, device, "mul"), 0, 1, 1, 1, 0, (), direct(a, a, b))
        state.command_buffer_finalize(ended)
        signalled, failed = state.fence_create(device, 0), state.fence_create(device, 0)
        signalled.signal()
        state.fence_fail(failed, 3)
        file = state.file_from_memory(device, -1, 1, vm(bytes(64)), 0, 64, 0)
        self.by_kind: dict[str, list[object]] = {
            "device": [device],
            "allocator": [state.device_allocator(device)],
            "buffer": [a, b, state.buffer_subspan(a, 4, 60), closed, None],
            "view": [state.buffer_view_create(a, 0, 256, F32, 1, (64,))],
            "commands": [recording, slots, ended, multiply_commands(state, device, 64)],
            "executable": [executable(state, device, "mul"), executable(state, device, "mul", "examples/saxpy")],
            "fence": [None, state.fence_create(device, 0), signalled, failed, Fence(())],
            "file": [file],
            "text": [
                vm("main"),
                vm(bytes(256)),
                vm("vulkan-spirv-fb"),
                vm(executable_blob("mul")),
                vm(b"\xff\x00"),
                vm(b""),
                None,
            ],
        }
        self.other: list[object] = [None, object(), VmList("any"), Channel(), Event(), 7, "text", device.queues[0]]

    def reference(self, name: str) -> object:
        roll = 1.0 if self.tame else self.choose.random()
        if roll < 0.06:
            return self.choose.choice(self.other)
        kinds = list(self.by_kind)
        kind = ROLES.get(name)
        if kind is None:
            kind = "buffer" if self.choose.random() < 0.6 else self.choose.choice(["text", "fence"])
        choices = self.by_kind[self.choose.choice(kinds) if roll < 0.12 else kind]
        return self.choose.choice(choices[:2] if self.tame else choices)

    def value(self, element: object, name: str) -> object:
        if isinstance(element, str):
            if element == "r":
                return self.reference(name)
            if self.tame:
                return self.choose.choice(TAME)
            return self.choose.choice(I32 if element == "i" else I64)
        elements = element.elements  # type: ignore[attr-defined]
        rows = []
        for _ in range(self.choose.choice((0, 1, 2, 3, 3))):
            row = tuple(
                self.value(one, "fence" if elements == ("r",) and name == "fences" else "buffer") for one in elements
            )
            rows.append(row if len(elements) > 1 else row[0])
        return tuple(rows)


def bound(state: HalState, name: str, convention: str) -> Callable[..., object]:
    module = hal_module([state._devices[0]])
    (found,) = (one for one in module._exports[name] if one.convention.text == convention)
    return found.bind(state)


@pytest.fixture
def fresh(driver: Driver) -> Iterator[tuple[HalState, Device]]:
    with Device(driver) as device:
        state = HalState((device,))
        yield state, device
        state.close()


@pytest.mark.sample(25)
@pytest.mark.parametrize(("name", "convention"), EXPORTS, ids=[" ".join(export) for export in EXPORTS])
def test_exports_raise_nothing_but_pumice_errors(fresh: tuple[HalState, Device], name: str, convention: str) -> None:
    state, device = fresh
    function = bound(state, name, convention)
    elements = CallingConvention.parse(convention).arguments
    names = [one.name for one in inspect.signature(function).parameters.values()]
    names = [one for one in names if one != "arguments"] + list(UNNAMED.get(name, ()))
    names += [""] * (len(elements) - len(names))
    choose = random.Random(f"{name} {convention}")
    objects = Objects(state, device, choose)
    for call in range(CALLS):
        if call % 25 == 24:
            objects.renew()
        objects.tame = call % 2 == 0
        arguments = [objects.value(element, argument) for element, argument in zip(elements, names, strict=False)]
        try:
            function(*arguments)
        except PumiceError:
            pass
    # Random copies of one command buffer, without barriers between them.
    assert all("SYNC-HAZARD" in error.message for error in take_validation_errors())
    for wrong in WRONG if "r" in elements else ():
        with pytest.raises(PumiceError):
            function(*[wrong if element == "r" else 0 if isinstance(element, str) else () for element in elements])
    a = buffer_of(state, device, np.arange(4, dtype=np.float32))
    done = state.fence_create(device, 0)
    state.queue_fill(device, -1, None, done, a, 0, 4, 0x40000000, 4, 0)
    assert wait_for(state, done) == 0
    assert array_of(state, a).tolist() == [2, 1, 2, 3]
