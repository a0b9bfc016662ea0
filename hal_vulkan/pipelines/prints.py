"""Lines that shaders print (spirv/instrument), on the host.

All printing pipelines of a device share a ring in memory that host and device see, so that lines come in the order in
which they were printed. Whoever has waited for work calls ``collect``, which reads the ring and passes its lines to
``on_line``.

Thread rule: any thread. ``on_line`` is called by one thread at a time, with no lock of the device held; lines that come
while it runs are passed by the thread that it runs in.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from ...base.lazy_dataclass import dataclass
from ...base.locks import RLock
from ...hal.memory import MemoryTypeFlags
from ...spirv.instrument.printed import HEADER_WORDS, RECORD_WORDS, RING_WORDS, PrintedLine, PrintSite
from ..memory.allocator import Allocator
from ..memory.buffer import Buffer
from ..sync.timeline import wait_timeline
from ..vulkan.functions import ffi

REPORT_MEMORY: Final = (
    MemoryTypeFlags.HOST_VISIBLE
    | MemoryTypeFlags.HOST_COHERENT
    | MemoryTypeFlags.HOST_CACHED
    | MemoryTypeFlags.DEVICE_VISIBLE
)
"""The memory that shaders report to: host and device see it."""
_BYTES: Final = 4 * (HEADER_WORDS + RING_WORDS)
_MODULO: Final = 1 << 32
# Other threads may submit work again and again; then a later wait reads what was printed.
_MAX_TRIES: Final = 4
_log: Final = logging.getLogger("pumice.print")


@dataclass(slots=True)
class _Kernel:
    """A printing pipeline: its name, and its prints. A closed one is forgotten once its lines were read."""

    name: str
    sites: tuple[PrintSite, ...]
    is_closed: bool = False


class PrintRing:
    """The lines of one device.

    Attributes:
        on_line: the function that takes each line.
        descriptor: the data that binds the ring; empty before the first ``add``.
    """

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._device = allocator.device
        self._buffer: Buffer | None = None
        self._words: Any = None
        self._kernels: dict[int, _Kernel] = {}
        self._last = 0
        self._read = 0
        self._counted = 0
        self._lock = RLock()
        self._lines: deque[PrintedLine] = deque()
        self._passing = threading.Lock()
        self.descriptor: bytes = b""
        self.on_line: Callable[[PrintedLine], object] = log_line

    def add(self, name: str, sites: tuple[PrintSite, ...]) -> int:
        """Adds a printing pipeline; returns the number that its records have to have."""
        with self._lock:
            if self._buffer is None:
                self._buffer = Buffer.create(self._allocator, _BYTES, memory_type=REPORT_MEMORY)
                self._buffer.write(bytes(_BYTES))
                assert self._buffer._pointer is not None
                self._words = ffi.cast("uint32_t *", self._buffer._pointer)
                self.descriptor = self._buffer.descriptor
            self._last += 1
            self._kernels[self._last] = _Kernel(name, sites)
            return self._last

    def rename(self, number: int, name: str) -> None:
        self._kernels[number].name = name

    def remove(self, number: int) -> None:
        """Takes note that no queue uses a pipeline any more."""
        self._kernels[number].is_closed = True

    def collect(self) -> None:
        """Passes the lines of finished work to ``on_line``; waits for all current work if there are any."""
        if self._buffer is None:
            return
        with self._device.guard.lock:
            has_lines = not self._device.rundown.is_over and self._words[1] != self._counted
        if has_lines:
            with self._lock:
                self._collect()
        while self._lines and self._passing.acquire(blocking=False):
            try:
                while self._lines:
                    self._pass(self._lines.popleft())
            finally:
                self._passing.release()

    def _pass(self, line: PrintedLine) -> None:
        try:
            self.on_line(line)
        except Exception:
            _log.exception("print=%r failed, and does not get this line: %s", self.on_line, line)

    def _collect(self) -> None:
        device = self._device
        for _ in range(_MAX_TRIES):
            submitted = [queue.submitted for queue in device.queues]
            for queue, number in zip(device.queues, submitted, strict=True):
                if number > queue.completed and device.lost is None:
                    wait_timeline(device, queue.timeline, number, None, "lines that shaders print")
            with device.guard.lock:
                if device.rundown.is_over:
                    return
                taken, counted = self._words[0], self._words[1]
                words = self._between(self._read, taken)
                if [queue.submitted for queue in device.queues] != submitted:
                    continue  # records may be incomplete
                self._clear(self._read, taken)
                self._words[2] = taken
            lines = self._parsed(words)
            lost = (counted - self._counted) % _MODULO - len(lines)
            self._read, self._counted = taken, counted
            break
        else:
            return
        self._lines += lines
        if lost:
            _log.warning(
                "%s lines that shaders printed are lost: expected at most %s MiB of them between two waits. Print from "
                "fewer invocations, or wait more often",
                f"{lost:,}",
                4 * RING_WORDS >> 20,
            )
        for number in [number for number, kernel in self._kernels.items() if kernel.is_closed]:
            del self._kernels[number]

    def _parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns the first words in memory, and the numbers, of the at most two parts of a range of the ring."""
        count = min((end - start) % _MODULO, RING_WORDS)
        first = start % RING_WORDS
        before_end = min(count, RING_WORDS - first)
        return [(HEADER_WORDS + first, before_end), (HEADER_WORDS, count - before_end)]

    def _between(self, start: int, end: int) -> list[int]:
        words: list[int] = []
        for first, count in self._parts(start, end):
            words += ffi.unpack(self._words + first, count) if count else []
        return words

    def _clear(self, start: int, end: int) -> None:
        for first, count in self._parts(start, end):
            ffi.memmove(self._words + first, bytes(4 * count), 4 * count)

    def _parsed(self, words: list[int]) -> list[PrintedLine]:
        """Returns the lines of records, up to one that something else has overwritten. Words of no record are 0."""
        lines: list[PrintedLine] = []
        at = 0
        while at + RECORD_WORDS <= len(words):
            number, kernel_number, x, y, z = words[at : at + RECORD_WORDS]
            if not number:
                at += 1
                continue
            kernel = self._kernels.get(kernel_number)
            if kernel is None or number > len(kernel.sites):
                break
            site = kernel.sites[number - 1]
            at += RECORD_WORDS
            text = site.text(words[at : at + site.words])
            lines.append(PrintedLine(kernel.name, (x, y, z), text, site.file, site.line))
            at += site.words
        return lines


def log_line(line: PrintedLine) -> None:
    """Passes a line to the log ``pumice.print``, as a warning, which Python shows without logging set up."""
    _log.warning("%s", line)
