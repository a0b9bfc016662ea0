"""Donated arguments of one call: arrays whose memory the program may take for its results (``donate=``).

Calling sequence: construction, which checks them → ``claim`` → ``match`` → the call → ``finish`` → ``release``. A
donated array is closed even if its memory was not used; if the call fails it stays open.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ...hal.buffer import Buffer, first_overlap
from ...hal.buffer_view import BufferView
from ...hal.fence import Fence
from ...hal.memory import MemoryAccess
from ...hal.programs.fence import HalFence, points_of
from ...status import ClosedError, FailedPreconditionError, InvalidArgumentError
from ..arrays.array import DeviceArray
from .signature import Argument, Signature

Donate: TypeAlias = "int | str | Sequence[int | str]"
"""Arguments whose memory a call may take for results: their numbers or names."""


class Donation:
    """The donated arguments of one call.

    Args:
        signature: the signature of the function that runs.
        inputs: the function's arguments without storages.
        values: the caller's values, one for each of ``inputs``.
        numbers: the numbers of the donated inputs. Only arrays have memory to donate; other values are ignored.
        wait: the fence that the call waits for.

    Attributes:
        arrays: the donated arrays by position of the argument.
    """

    def __init__(
        self,
        signature: Signature,
        inputs: Sequence[Argument],
        values: Sequence[object],
        numbers: Sequence[int],
        wait: Fence | HalFence | None,
    ) -> None:
        self._signature = signature
        self.arrays: dict[int, DeviceArray] = {}
        self._claimed: list[Buffer] = []
        donated = [number for number in numbers if isinstance(values[number], DeviceArray)]
        for number in donated:
            array = values[number]
            assert isinstance(array, DeviceArray)
            self._check(inputs[number], array)
            self.arrays[inputs[number].position] = array
        self._check_shared(inputs, values, donated)
        if self.arrays and wait is not None:
            self._check_wait(wait)

    def _check(self, argument: Argument, array: DeviceArray) -> None:
        buffer = array.buffer
        problem = ""
        if buffer._closed or array.is_closed:
            raise ClosedError(self._wrong(argument, buffer.moved_text or "it was closed"))
        if array.is_view:
            problem = "it is a view of another array; donate that one, or a copy()"
        elif buffer.imported:
            problem = "its memory is the host's; donate a copy()"
        if problem:
            raise InvalidArgumentError(self._wrong(argument, problem))

    def _check_shared(self, inputs: Sequence[Argument], values: Sequence[object], donated: Sequence[int]) -> None:
        if not donated:
            return
        donated_numbers = set(donated)
        others = [number for number in range(len(values)) if number not in donated_numbers]
        pair = first_overlap(*([buffer_of(values[number]) for number in numbers] for numbers in (donated, others)))
        if pair is not None:
            donor, sharer = ([*donated, *others][number] for number in pair)
            raise InvalidArgumentError(
                self._wrong(inputs[donor], f"argument {inputs[sharer].position} shares its memory; give a copy()")
            )

    def _wrong(self, argument: Argument, problem: str) -> str:
        return f"{self._signature.name}: cannot donate argument {argument.position} ({argument}): {problem}"

    def _check_wait(self, wait: Fence | HalFence) -> None:
        """Rejects fences of other devices: work after them is submitted later, when the arrays are closed."""
        devices = {array.device.hal for array in self.arrays.values()}
        for semaphore, value in points_of(wait):
            if semaphore.device not in devices and semaphore.reached < value:
                raise FailedPreconditionError(
                    f"{self._signature.name}: with donate= it cannot wait for a fence of another device; await it first"
                )

    def claim(self) -> None:
        """Rejects arrays whose memory another call in flight will take; ``release`` must follow."""
        for position, array in self.arrays.items():
            buffer = array.shared()
            with array.device.mark_lock:
                if buffer.is_claimed:
                    raise FailedPreconditionError(
                        self._wrong(self._signature.arguments[position], "it is donated to a call in progress")
                    )
                buffer.is_claimed = True
            self._claimed.append(buffer)

    def release(self) -> None:
        """Releases the claims; idempotent."""
        while self._claimed:
            self._claimed.pop().is_claimed = False

    def match(self, storages: Sequence[tuple[Argument, int | None]]) -> dict[int, Buffer]:
        """Returns memory of donated arrays by position, for the most storages without memory.

        ``storages`` are arguments and their bytes, where they are known.
        """
        candidates = {
            storage.position: [
                position for position in storage.reuses if position in self.arrays and self._suits(position, nbytes)
            ]
            for storage, nbytes in storages
        }
        holder: dict[int, int] = {}  # storage by donated argument

        def place(storage: int, seen: set[int]) -> bool:
            for position in candidates[storage]:
                if position not in seen:
                    seen.add(position)
                    if position not in holder or place(holder[position], seen):
                        holder[position] = storage
                        return True
            return False

        for storage in candidates:
            place(storage, set())
        return {storage: self.arrays[position].shared() for position, storage in holder.items()}

    def _suits(self, position: int, nbytes: int | None) -> bool:
        array, declared = self.arrays[position], self._signature.arguments[position].element_type
        buffer = array.shared()
        return (
            array.nbytes == nbytes
            and buffer.parent is None
            and buffer.bindable
            and (buffer.access is MemoryAccess.ALL or bool(buffer.access & MemoryAccess.WRITE))
            and not (declared is not None and declared.is_sub_byte)
        )

    def finish(self, values: Iterable[object]) -> list[object]:
        """Closes the arrays and frees unused memory.

        Returns the VM's results ``values``; those in memory of the arrays become views of buffers that stay open.
        """
        results = list(values)
        places: dict[Buffer, list[int]] = {}  # positions of the results in a buffer
        for index, value in enumerate(results):
            part = buffer_of(value)
            while part is not None:
                places.setdefault(part, []).append(index)
                part = part.parent
        for position, array in self.arrays.items():
            argument = self._signature.arguments[position]
            old, by = array.shared(), _donated_text(self._signature.name, position, argument.name)
            used = places.get(old)
            if not used:
                array.close_for(by)
                continue
            if old.parent is None:
                new = old.moved(by)
            else:  # other results of the program are in the same buffer
                new = old.parent
                array.close_for(by)
            for index in used:
                results[index] = _rebased(results[index], new)
        return results


@functools.lru_cache(1024)
def _donated_text(function: str, position: int, name: str) -> str:
    """Returns the message for a use of a donated array."""
    return (
        f"this array was donated to {function} as argument {position} ({name}): its memory is the program's; use a "
        "result of that call, or donate a copy()"
    )


def buffer_of(value: object) -> Buffer | None:
    """Returns the buffer of an array or a view; ``None`` for other values."""
    if isinstance(value, (BufferView, DeviceArray)):  # this order is fast for both
        return value.buffer
    return value if isinstance(value, Buffer) else None


def _rebased(value: object, owner: Buffer) -> object:
    """Returns a value's bytes as a part of ``owner``, which contains them."""
    part = buffer_of(value)
    assert part is not None
    if part.offset != owner.offset or part.size != owner.size:
        owner = owner.subspan(part.offset - owner.offset, part.size)
    if not isinstance(value, BufferView):
        return owner
    return BufferView.of_checked(owner, value.shape, value.element_type, value.encoding)


def donated_numbers(signature: Signature, inputs: Sequence[Argument], donate: Donate) -> tuple[int, ...]:
    """Returns the inputs in ``donate``, without duplicates.

    InvalidArgumentError for entries that are no number or name of an input.
    """
    several = (donate,) if isinstance(donate, (int, str)) else donate
    numbers: dict[int, None] = {}
    try:
        wanted = list(several)
    except TypeError:
        wanted = [None]  # type: ignore[list-item]  # refused below
    for name in wanted:
        if isinstance(name, str):
            matching = [number for number, argument in enumerate(inputs) if argument.name == name]
        elif isinstance(name, int) and not isinstance(name, bool):
            matching = [name] if 0 <= name < len(inputs) else []
        else:
            raise InvalidArgumentError(f"{signature.name}: donate takes numbers or names of arguments, got {donate!r}")
        if len(matching) != 1:
            raise InvalidArgumentError(
                f"{signature.name} has no argument {name!r} to donate; it takes {', '.join(map(str, inputs)) or 'none'}"
            )
        numbers[matching[0]] = None
    return tuple(numbers)
