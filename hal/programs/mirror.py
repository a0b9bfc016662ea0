"""Work on one device with buffers of another, which Vulkan devices cannot access.

A ``Mirror`` stands in for such a buffer. Ranges that commands use are copied to it through the host before they run,
and ranges that they may have written are copied back before their signal fence is reached. So a program for several
devices can share any buffers, at a cost per byte.

Calling sequence: command buffers note their uses (``ProgramCommandBuffer.reference``) → ``submit_across`` at each
submission.

Thread rule: any thread; the steps of a submission run in order on poll threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ...status import InternalError, PumiceError
from ..buffer import Buffer
from ..command_buffer import CommandBuffer
from ..device import Device
from ..memory import MemoryTypeFlags
from ..mirror import Mirror, Use
from ..program import check_buffer, root_of
from .fence import HalFence, OptionalFence, fail, join, signal

Once: TypeAlias = Callable[[Buffer, Callable[[CommandBuffer], None]], HalFence]
"""Runs commands on the device of a buffer; returns the fence that they signal."""

_HOST: Final = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE | MemoryTypeFlags.HOST_CACHED


def mirrored_table(
    device: Device, table: Sequence[tuple[Buffer | None, int, int]], uses: Mapping[int, Iterable[Use]]
) -> tuple[list[tuple[Buffer | None, int, int]], list[Mirror]]:
    """Returns a binding table with stand-ins for buffers of other devices, and the stand-ins. ``uses`` has the accesses
    to each slot, within its range; lengths of -1 reach to the end.
    """
    spans: dict[Buffer, tuple[int, int]] = {}
    places: list[tuple[Buffer, int, int] | None] = []
    for buffer, offset, size in table:
        if not isinstance(buffer, Buffer) or buffer.device is device:
            places.append(None)
            continue
        part = check_buffer(buffer, "binding table").subspan(offset, None if size == -1 else size)
        root = root_of(buffer)
        start = part.offset - root.offset
        low, high = spans.get(root, (start, start))
        spans[root] = min(low, start), max(high, start + part.size)
        places.append((root, start, part.size))
    mirrors = {
        root: Mirror(device.create_buffer(max(high - low, 1), memory_type=_HOST), root, low)
        for root, (low, high) in spans.items()
    }
    replaced: list[tuple[Buffer | None, int, int]] = []
    for slot, (entry, mirrored) in enumerate(zip(table, places, strict=True)):
        if mirrored is None:
            replaced.append(entry)
            continue
        root, start, length = mirrored
        mirror = mirrors[root]
        for offset, size, written in uses.get(slot, ()):
            mirror.uses.add((start + offset, length - offset if size == -1 else size, written))
        replaced.append((mirror.local, start - mirror.start, length))
    return replaced, list(mirrors.values())


class _Transfer:
    """Copies of one mirror, through the foreign buffer itself or through a host-visible buffer."""

    def __init__(self, mirror: Mirror, once: Once) -> None:
        self.mirror = mirror
        self.once = once
        self.staged: Buffer | None = None
        device = mirror.foreign.device
        if not mirror.foreign.host_visible:
            assert isinstance(device, Device)
            self.staged = device.create_buffer(mirror.local.size, memory_type=_HOST)

    def fetch(self) -> HalFence | None:
        """Copies used ranges to host-visible memory; returns ``None`` if they are already there."""
        return self._copy(self.mirror.ranges(written=False), to_staged=True)

    def read(self) -> None:
        """Copies used ranges from the host to the mirror."""
        mirror = self.mirror
        for offset, size in mirror.ranges(written=False):
            there = offset - mirror.start
            data = mirror.foreign.read(offset, size) if self.staged is None else self.staged.read(there, size)
            mirror.local.write(data, there)

    def write(self) -> HalFence | None:
        """Copies written ranges back from the mirror; returns ``None`` if they are already there."""
        mirror, ranges = self.mirror, self.mirror.ranges(written=True)
        for offset, size in ranges:
            there = offset - mirror.start
            data = mirror.local.read(there, size)
            if self.staged is None:
                mirror.foreign.write(data, offset)
            else:
                self.staged.write(data, there)
        return self._copy(ranges, to_staged=False)

    def _copy(self, ranges: Sequence[tuple[int, int]], *, to_staged: bool) -> HalFence | None:
        staged, foreign, start = self.staged, self.mirror.foreign, self.mirror.start
        if staged is None or not ranges:
            return None

        def record(commands: CommandBuffer) -> None:
            for offset, size in ranges:
                if to_staged:
                    commands.copy(foreign, staged, size, source_offset=offset, target_offset=offset - start)
                else:
                    commands.copy(staged, foreign, size, source_offset=offset - start, target_offset=offset)

        return self.once(foreign, record)


def submit_across(
    mirrors: Sequence[Mirror],
    temporary: Sequence[Mirror],
    wait: OptionalFence,
    target: OptionalFence,
    once: Once,
    submit: Callable[[], HalFence],
) -> None:
    """Fills the mirrors once ``wait`` is reached, submits, copies back, then signals ``target``. Returns immediately.

    ``mirrors`` are all mirrors of the work, ``temporary`` those to close at the end. ``once`` runs the copies,
    ``submit`` submits the work and returns the fence that it signals.
    """
    transfers: list[_Transfer] = []

    def end(error: PumiceError | None) -> None:
        for transfer in transfers:
            if transfer.staged is not None:
                transfer.staged.close()
        for mirror in temporary:
            mirror.close()
        if error is not None:
            fail(target, error)
        else:
            signal(target)

    def fetch() -> Iterable[HalFence | None]:
        transfers.extend(_Transfer(mirror, once) for mirror in mirrors)
        return [transfer.fetch() for transfer in transfers]

    def run() -> Iterable[HalFence | None]:
        for transfer in transfers:
            transfer.read()
        return (submit(),)

    def write() -> Iterable[HalFence | None]:
        return [transfer.write() for transfer in transfers]

    steps = iter((fetch, run, write))

    def advance(error: PumiceError | None) -> None:
        """Runs the next step, when the previous step's fences are reached."""
        step = next(steps, None)
        if error is not None or step is None:
            end(error)
            return
        try:
            pending = [fence for fence in step() if fence is not None]
        except PumiceError as raised:
            end(raised)
            return
        except Exception as raised:  # a bug must not leave a fence pending
            internal = InternalError(f"work across devices raised {type(raised).__name__}: {raised}")
            internal.__cause__ = raised
            end(internal)
            return
        if pending:
            join(pending).notify(advance)
        else:
            advance(None)

    if wait is None:
        advance(None)
    else:
        wait.notify(advance)
