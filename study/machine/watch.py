"""Readings of the machine between blocks: its state, its clocks, and the compute reference."""

from __future__ import annotations

import time
from typing import Final

from ...base.closeable import Closeable
from ...runtime.device import Device
from ..results.storage.sink import Sink
from ..workloads.reference_kernel import ReferenceKernel
from ..workloads.workload import Load
from .device_clocks import clock_reader
from .machine_state import MachineState

_EVERY_NS: Final = 500_000_000
_SHARE: Final = 0.05  # the largest share of the time that the reference takes
_WANTED_NS: Final = 100_000


class Watch(Closeable):
    """Watches the machine and one device; with ``reference`` also one workgroup of arithmetic, the same for all points.

    Calling sequence: ``Watch`` → ``read`` between blocks → ``end``, which stores the last state → ``close``. One thread
    at a time.
    """

    def __init__(self, uri: str, device: Device, sink: Sink, *, reference: bool) -> None:
        self._uri = uri
        self._sink = sink
        self._clocks = clock_reader(device)
        load = Load(timed=True)
        self._reference = ReferenceKernel(device, load, _WANTED_NS) if reference else None
        self._state = MachineState()
        self._began = time.monotonic_ns()
        self._watched_ns = self._next_ns = 0

    def read(self) -> None:
        """Reads what is due."""
        began = time.monotonic_ns()
        if began >= self._next_ns:
            self._next_ns = began + _EVERY_NS
            self._read_state()
            if clocks := self._clocks():
                self._sink.add_clock(self._uri, host_ns=time.monotonic_ns(), **clocks)
        began = time.monotonic_ns()
        if self._reference is not None and self._watched_ns <= _SHARE * (began - self._began):
            reading = self._reference.read()
            self._sink.add_reference(
                self._uri, started_ns=reading.started_ns, duration_ns=reading.duration_ns, load=reading.load
            )
            self._watched_ns += time.monotonic_ns() - began

    def end(self) -> None:
        """Stores the state at the end."""
        self._read_state()

    def _read_state(self) -> None:
        state = self._state.read()
        self._sink.add_state(host_ns=time.monotonic_ns(), **state)

    def close(self) -> None:
        self._state.close()
        if self._reference is not None:
            self._reference.close()
