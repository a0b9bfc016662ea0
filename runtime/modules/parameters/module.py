"""The native module ``io_parameters``: parameters into buffers, and back.

    module = io_parameters_module({"model": ParameterIndex.from_file("model.safetensors")})

Facts: ``runtime/src/iree/modules/io/parameters/``, IREE 3.1 to 3.13: the same three functions with the same calling
conventions. Keys come in two buffers: a table of (u32 offset, u32 length) and the text that it points into. Spans come
in a third: (u64 parameter offset, u64 buffer offset, u64 length) each.

A failed wait fence fails the signal fence. An error of the call itself, such as a missing key, is raised and also fails
the signal fence, for which other work may wait.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ....base.lazy_dataclass import dataclass
from ....base.memory_budget import MemoryBudget
from ....hal.buffer import Buffer
from ....hal.device import Device
from ....hal.memory import BufferUsage
from ....hal.program import check_buffer
from ....hal.programs.checks import check_range, require
from ....hal.programs.device_context import DeviceContext, TransferContexts
from ....hal.programs.fence import OptionalFence, fail, failure_of, optional_fence
from ....hal.programs.file import read_back
from ....status import InvalidArgumentError, OutOfRangeError, PumiceError, shown
from ....vm.native.module import NativeModule, export
from ....vm.types.buffer import require_buffer
from ....vm.types.list import VmList
from ....vm.types.ref_types import ref_type_class
from ...parameters.entry import ParameterEntry, decode_name
from ...parameters.index import ParameterIndex, ParameterScopes, find_scope
from .upload import ParameterUpload, repeat_pattern

_KEY: Final = struct.Struct("<II")
_SPAN: Final = struct.Struct("<QQQ")
_U32: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class _Span:
    """``length`` bytes at ``parameter_offset`` of an entry and at ``buffer_offset`` of a buffer."""

    entry: ParameterEntry
    parameter_offset: int
    buffer_offset: int
    length: int

    def upload(self, upload: ParameterUpload, target: Buffer) -> None:
        """Copies the bytes into ``target``."""
        if not self.length:
            return
        splat = self.entry.splat
        if splat is not None:
            pattern = repeat_pattern(splat, self.parameter_offset, len(splat))
            upload.fill(target, self.buffer_offset, self.length, pattern)
        else:
            upload.write(target, self.buffer_offset, self.of(self.entry.view()))

    def of(self, data: memoryview) -> memoryview:
        """Returns the span's part of the entry's bytes."""
        return data[self.parameter_offset : self.parameter_offset + self.length]


def io_parameters_module(scopes: ParameterScopes, memory: MemoryBudget | None = None) -> NativeModule:
    """Returns the module that gives programs the parameters of these scopes, within a memory budget.

    InvalidArgumentError for a scope without an index.
    """
    for scope, index in scopes.items():
        if not isinstance(index, ParameterIndex):
            raise InvalidArgumentError(
                f"scope {shown(scope)}: expected a ParameterIndex, got {type(index).__name__}; "
                "make one with ParameterIndex.from_file or from_arrays"
            )
    return NativeModule("io_parameters", version=0, state=functools.partial(_Parameters, dict(scopes), memory))


class _Parameters:
    """The state of one VM context: its device contexts."""

    def __init__(self, scopes: ParameterScopes, memory: MemoryBudget | None) -> None:
        self._scopes = scopes
        self._contexts = TransferContexts(memory)

    @export("load", "0rIrrrIiirrr_r")
    def load(
        self,
        device: object,
        affinity: int,
        wait: object,
        target: object,
        scope: object,
        target_affinity: int,
        memory_type: int,
        usage: int,
        *keys: object,
    ) -> VmList:
        """Returns a new buffer for each key, filled when ``target`` is reached."""
        with self._call(device, wait, target) as (context, wait_fence, signal_fence):
            wanted = self._resolve(scope, keys)
            for span in wanted:
                if span.buffer_offset:
                    raise InvalidArgumentError(
                        f"parameter {shown(span.entry.name)}: a load makes a buffer of the parameter, so its buffer "
                        f"offset is 0, not {span.buffer_offset}"
                    )
            # New buffers need not wait.
            buffers: list[Buffer] = []
            with ParameterUpload(context, None) as upload:
                for span in wanted:
                    buffer = context.allocator.allocate(
                        memory_type & _U32, (usage & _U32) | BufferUsage.TRANSFER, span.length
                    )
                    buffers.append(buffer)
                    span.upload(upload, buffer)
                upload.finish(wait_fence, signal_fence)
        return VmList.of("ref:hal.buffer" if ref_type_class("hal.buffer") is not None else "any", buffers)

    @export("gather", "0rIrrrrrrr_v")
    def gather(
        self, device: object, affinity: int, wait: object, target: object, scope: object, buffer: object, *keys: object
    ) -> None:
        """Copies parameters into ranges of one buffer."""
        with self._call(device, wait, target) as (context, wait_fence, signal_fence):
            checked = check_buffer(buffer, "io_parameters.gather")
            spans = self._resolve(scope, keys, checked)
            failure = failure_of(wait_fence)
            if failure is not None:
                fail(signal_fence, failure)
                return
            with ParameterUpload(context, wait_fence) as upload:
                for span in spans:
                    span.upload(upload, checked)
                upload.finish(wait_fence, signal_fence)

    @export("scatter", "0rIrrrrrrr_v")
    def scatter(
        self, device: object, affinity: int, wait: object, target: object, buffer: object, scope: object, *keys: object
    ) -> None:
        """Copies ranges of one buffer into parameters, which must be writable."""
        with self._call(device, wait, target) as (context, wait_fence, signal_fence):
            checked = check_buffer(buffer, "io_parameters.scatter")
            # All parameters are checked before the first is written.
            spans = self._resolve(scope, keys, checked)
            moves = [(span.buffer_offset, span.of(span.entry.writable_view())) for span in spans]
            read_back(context, wait_fence, signal_fence, checked, moves)

    @contextmanager
    def _call(
        self, device: object, wait: object, target: object
    ) -> Iterator[tuple[DeviceContext, OptionalFence, OptionalFence]]:
        """Opens a call's device context and fences; an error within fails the signal fence."""
        wait_fence, signal_fence = optional_fence(wait), optional_fence(target)
        try:
            yield self._contexts[require(device, Device, "device")], wait_fence, signal_fence
        except PumiceError as error:
            fail(signal_fence, error)
            raise

    def _resolve(self, scope: object, keys: Sequence[object], buffer: Buffer | None = None) -> list[_Span]:
        """Returns the spans of a call, each checked against its entry and the buffer."""
        name = "" if scope is None else decode_name(require_buffer(scope).as_memoryview())
        index = find_scope(self._scopes, name)
        table, text, ranges = (require_buffer(value).as_memoryview() for value in keys)
        count, rest = divmod(len(ranges), _SPAN.size)
        if rest:
            raise InvalidArgumentError(
                f"io_parameters: expected spans of {_SPAN.size} bytes, got a buffer of {len(ranges)} bytes"
            )
        if len(table) < count * _KEY.size:
            raise InvalidArgumentError(
                f"io_parameters: expected {count} keys of {_KEY.size} bytes for {count} spans, got a table of "
                f"{len(table)} bytes"
            )
        resolved = []
        for ordinal in range(count):
            offset, length = _KEY.unpack_from(table, ordinal * _KEY.size)
            if offset + length > len(text):
                raise OutOfRangeError(
                    f"io_parameters: key {ordinal} is bytes [{offset}, {offset + length}) of a text of {len(text)} "
                    "bytes"
                )
            entry = index[decode_name(text[offset : offset + length])]
            parameter_offset, buffer_offset, size = _SPAN.unpack_from(ranges, ordinal * _SPAN.size)
            if parameter_offset + size > entry.length:
                raise OutOfRangeError(
                    f"parameter {shown(entry.name)} of scope {shown(name)}: the program wants bytes "
                    f"[{parameter_offset}, {parameter_offset + size}), it has {entry.length}; "
                    "is it of the shape and type that the program was compiled for?"
                )
            if buffer is not None:
                check_range(buffer_offset, size, buffer.size, f"parameter {shown(entry.name)}")
            resolved.append(_Span(entry, parameter_offset, buffer_offset, size))
        return resolved
