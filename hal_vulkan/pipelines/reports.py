"""Reports of instrumented shaders (spirv/instrument), on the host.

Each instrumented pipeline has a slot: a range of a buffer that host and device see. After waiting for work, callers
call ``collect``, which compares the slots with zeros. A nonzero slot sets an error on its *verdict*, and is reset to
zero. A verdict covers all uses of a pipeline since the previous verdict. Results are judged by the verdict that was
current when they were submitted, which distinguishes kernels in flight at the same time.

Thread rule: any thread; it locks.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from ...base.locks import RLock
from ...spirv.instrument.printed import PrintSite
from ...spirv.instrument.reports import (
    HOST_WORDS,
    KERNEL_WORD,
    TABLE_WORDS,
    Report,
    ReportKind,
    Site,
    access_message,
    report_bytes,
)
from ...status import DataLossError, OutOfRangeError, PumiceError
from ..memory.allocator import Allocator
from ..memory.buffer import Buffer
from ..sync.timeline import wait_timeline
from ..vulkan.functions import ffi
from .prints import REPORT_MEMORY, PrintRing

_CHUNK: Final = 32  # slots, of at most so many bytes together
_CHUNK_BYTES: Final = 1 << 16
_ADDRESS: Final = struct.Struct("<Q")


class Verdict:
    """The state of a pipeline's uses during some time: unknown, good or bad.

    Attributes:
        failure: the reported error, or ``None``.
        payload: the payload that marks the end of the latest use, for callers that count uses.
        good_until: a payload up to which the uses are known to have reported nothing.
        alone: the set of only this verdict, which most results are judged by.
        is_raised: whether the failure was raised to a caller.
    """

    __slots__ = ("alone", "failure", "good_until", "is_raised", "payload")

    def __init__(self) -> None:
        self.failure: PumiceError | None = None
        self.is_raised: bool = False
        self.good_until: int = -1
        self.alone: frozenset[Verdict] = frozenset((self,))
        self.payload: int = 0


class ReportSlot:
    """The memory in which one pipeline reports.

    Attributes:
        name: the pipeline's name, for messages.
        sites: the module's sites that report.
        descriptor: the data that binds the memory, see ``Buffer.descriptor``, and the ring if the module prints.
        verdict: the verdict of the uses from now on.
        kernel: the number of the pipeline in the ring of prints; 0 if it does not print.
    """

    __slots__ = ("_table", "buffer", "chunk", "descriptor", "kernel", "name", "sites", "verdict")

    def __init__(self, table: ReportTable, chunk: _Chunk, buffer: Buffer, name: str, sites: tuple[Site, ...]) -> None:
        self._table = table
        self.chunk: _Chunk = chunk
        self.buffer: Buffer = buffer
        self.descriptor: bytes = buffer.descriptor
        self.name: str = name
        self.sites: tuple[Site, ...] = sites
        self.verdict: Verdict = Verdict()
        self.kernel: int = 0

    def rename(self, name: str) -> None:
        self.name = name
        if self.kernel:
            self._table.prints.rename(self.kernel, name)

    @property
    def searches_addresses(self) -> bool:
        """Whether the shader looks device addresses up in the table of live buffers."""
        return any(site.kind is ReportKind.WILD_ADDRESS for site in self.sites)

    def next_verdict(self) -> Verdict:
        """Returns the verdict on the next use: a new verdict if all uses so far are known to be good.

        The caller must have exclusive access until it has noted the use's payload in the verdict.
        """
        verdict = self.verdict
        if verdict.payload <= verdict.good_until:
            verdict = self.verdict = Verdict()
        return verdict


class _Chunk:
    """A buffer of slots, each of ``stride`` bytes."""

    def __init__(self, allocator: Allocator, stride: int) -> None:
        count = max(1, min(_CHUNK, _CHUNK_BYTES // stride))
        size = count * stride
        self.stride = stride
        self.buffer: Buffer = Buffer.create(allocator, size, memory_type=REPORT_MEMORY)
        self.buffer.write(bytes(size))
        self.free: list[Buffer] = [self.buffer.subspan(index * stride, stride) for index in reversed(range(count))]
        self.used: dict[int, ReportSlot] = {}
        assert self.buffer._pointer is not None
        self.view: Any = ffi.buffer(self.buffer._pointer, size)
        self.quiet: bytes = bytes(size)

    def set_address_table(self, slot: ReportSlot, address: int) -> None:
        """Passes the address of the table of live buffers to a shader; 0 for no table."""
        self.set_word(slot, TABLE_WORDS[0], _ADDRESS.pack(address))

    def set_word(self, slot: ReportSlot, word: int, data: bytes) -> None:
        """Passes data to a shader, from a word of its report on."""
        slot.buffer.write(data, 4 * word)
        start = slot.buffer.offset - self.buffer.offset + 4 * word
        self.quiet = self.quiet[:start] + data + self.quiet[start + len(data) :]


class ReportTable:
    """The slots of one device.

    Attributes:
        prints: the lines that its shaders print.
    """

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        device = self._device = allocator.device
        # A power of two, as the sizes of slots are.
        self._alignment = device.profile.limits.min_storage_buffer_offset_alignment
        self._chunks: list[_Chunk] = []
        self._lock = RLock()
        self.prints: PrintRing = PrintRing(allocator)

    def take(self, name: str, sites: tuple[Site, ...], prints: tuple[PrintSite, ...] = ()) -> ReportSlot:
        """Returns a slot for a pipeline; the caller gives it back when no queue uses the pipeline."""
        stride = max(self._alignment, 1 << (report_bytes(len(sites)) - 1).bit_length())
        with self._lock:
            chunk = next((other for other in self._chunks if other.free and other.stride == stride), None)
            if chunk is None:
                chunk = _Chunk(self._allocator, stride)
                self._chunks.append(chunk)
            slot = ReportSlot(self, chunk, chunk.free.pop(), name, sites)
            chunk.used[slot.buffer.offset] = slot
            if slot.searches_addresses:
                chunk.set_address_table(slot, self._allocator.take_address_table())
            if prints:
                slot.kernel = self.prints.add(name, prints)
                chunk.set_word(slot, KERNEL_WORD, slot.kernel.to_bytes(4, "little"))
                slot.descriptor += self.prints.descriptor
            return slot

    def give_back(self, slot: ReportSlot) -> None:
        """Takes a slot back, after collecting its report. Does nothing on a closed device, whose memory is freed."""
        if self._device.is_closed:
            return
        self.collect()
        with self._lock:
            chunk = slot.chunk
            if chunk.used.pop(slot.buffer.offset, None) is None:
                return
            if slot.searches_addresses:
                chunk.set_address_table(slot, 0)
                self._allocator.give_back_address_table()
            if slot.kernel:
                chunk.set_word(slot, KERNEL_WORD, bytes(4))
                self.prints.remove(slot.kernel)
            chunk.free.append(slot.buffer)
            if not chunk.used:
                self._chunks.remove(chunk)
                chunk.view = ffi.buffer(ffi.NULL, 0)
                chunk.buffer.close()

    def collect(self) -> None:
        """Sets an error on the verdicts of slots that have a report, and passes on what shaders printed."""
        self.prints.collect()
        if self._chunks:
            with self._device.guard.lock:
                is_quiet = self._device.rundown.is_over or all(chunk.view == chunk.quiet for chunk in self._chunks)
            if not is_quiet:
                self._collect()

    def _collect(self) -> None:
        with self._lock:
            # Other uses of the pipeline may be in flight and report again: these count as the same failure.
            for queue in self._device.queues:
                number = queue.submitted
                if number > queue.completed and self._device.lost is None:
                    wait_timeline(self._device, queue.timeline, number, None, "reports of shaders")
            for chunk in self._chunks:
                for slot in chunk.used.values():
                    data = slot.buffer.read()
                    report = Report.read(data, slot.sites)
                    if report is not None:
                        slot.verdict.failure = _error(slot.name, report)
                        slot.verdict = Verdict()
                        slot.buffer.write(bytes(slot.buffer.size - 4 * HOST_WORDS), 4 * HOST_WORDS)


def _error(name: str, report: Report) -> PumiceError:
    site = report.site
    where = f"{site.file or 'line'}{':' if site.file else ' '}{site.line}" if site.line else ""
    if site.kind is ReportKind.LOOPS_CUT:
        subject = f"the loop at {where}" if where else f"a loop of {site.name or 'it'}"
        return DataLossError(
            f"{name}: its results are wrong, because the driver ended {subject} before its time. Mesa's llvmpipe runs "
            "65,535 passes of all loops of an invocation together, then ends every loop early. Give the work to "
            "more invocations or to several dispatches, or run it on a GPU; loop_guard=False accepts such results",
            location=where or None,
        )
    others = ""
    if report.others:
        places = "another place fails" if report.others == 1 else f"{report.others} other places fail"
        others = f", and {places}"
    subject = (
        f"{name}: {access_message(report)} by invocation {report.invocation}. It comes first in the program{others}: "
        "what fails later may be a consequence"
    )
    if site.kind is ReportKind.UNINITIALISED:
        return DataLossError(
            f"{subject}. Its value is undefined: write it first, with a barrier between", location=where or None
        )
    return OutOfRangeError(
        f"{subject}. Sanitised, the access is left out: a read gives 0, a write or an atomic does nothing. Without "
        "sanitize it reads or overwrites other memory, or ends the process",
        location=where or None,
    )
