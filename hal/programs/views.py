"""Checks of programs' buffer and view arguments, and the views that programs return."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence

from ...formats.element_type import ElementType, EncodingType, format_shape, format_shape_and_type
from ...status import InvalidArgumentError, OutOfRangeError, PermissionDeniedError
from ..buffer import Buffer
from ..buffer_view import BufferView
from ..memory import BufferUsage, MemoryTypeFlags
from ..program import check_buffer, root_of, subspan
from .checks import Ref, require
from .device_context import DeviceContext
from .file import read_bytes


def check_compatible(buffer: Ref, name: str, length: int, memory_types: int, usage: int) -> None:
    """Raises unless a buffer has the length, memory type and usage that a program was compiled for."""
    checked = check_buffer(buffer, name)
    if checked.size < length:
        raise InvalidArgumentError(f"{name} buffer byte length {checked.size} less than expected minimum {length}")
    if int(checked.memory_type) & memory_types != memory_types:
        raise PermissionDeniedError(
            f"{name} buffer memory type is not compatible; buffer has {checked.memory_type!r}, operation requires "
            f"{MemoryTypeFlags(memory_types)!r}"
        )
    if int(checked.usage) & usage != usage:
        raise PermissionDeniedError(
            f"{name} requested usage was not specified when the buffer was allocated; buffer allows "
            f"{checked.usage!r}, operation requires {BufferUsage(usage)!r}"
        )


def preserve(buffer: Ref) -> None:
    """Adds an owner of a program's buffer."""
    root = root_of(check_buffer(buffer, "buffer.allocation.preserve"))
    if root.owners is not None:
        root.owners += 1


def discard(buffer: Ref) -> int:
    """Removes an owner; returns 1 if it was the last, else 0. The caller keeps its own buffers."""
    root = root_of(check_buffer(buffer, "buffer.allocation.discard"))
    if root.owners is None:
        return 0
    root.owners -= 1
    return int(root.owners == 0)


def is_terminal(buffer: Ref) -> int:
    """Returns 1 if there is a single owner, else 0."""
    return int(root_of(check_buffer(buffer, "buffer.allocation.is_terminal")).owners == 1)


def element_type_of(view: Ref) -> int:
    return int(require(view, BufferView, "buffer_view").element_type)


def encoding_of(view: Ref) -> int:
    return int(require(view, BufferView, "buffer_view").encoding)


def rank_of(view: Ref) -> int:
    """Returns a view's number of axes."""
    return len(require(view, BufferView, "buffer_view").shape)


def dim_of(view: Ref, index: int) -> int:
    """Returns the length of a view's axis; 0 if there is no such axis, as in other runtimes."""
    shape = require(view, BufferView, "buffer_view").shape
    return shape[index] if 0 <= index < len(shape) else 0


def create_view(
    buffer: Ref, element_type: int, shape: tuple[int, ...], *, offset: int = 0, length: int = -1, encoding: int = 1
) -> BufferView:
    """Returns a view of a range of a buffer (-1 for up to its end).

    ``element_type`` and ``encoding`` are codes as in modules.
    """
    kind, layout, size = _layout(element_type, encoding, shape)
    if offset or not isinstance(buffer, Buffer) or length != buffer.size or buffer._closed or buffer.parent:
        buffer = subspan(check_buffer(buffer, "buffer_view.create"), offset, length)
    if size > buffer.size:
        raise OutOfRangeError(
            f"buffer_view.create: {size} bytes of elements do not fit the range of {buffer.size} bytes"
        )
    return BufferView.of_checked(buffer, shape, kind, layout)


@functools.lru_cache(1024)
def _layout(element_type: int, encoding: int, shape: tuple[int, ...]) -> tuple[ElementType, EncodingType, int]:
    """Returns the element type and encoding of a view, and its size in bytes."""
    kind = ElementType(element_type)
    try:
        layout = EncodingType(encoding)
    except ValueError:
        raise InvalidArgumentError(
            f"encoding type {encoding:#010x} is not known; 1 is dense row-major, 0 opaque"
        ) from None
    if shape and min(shape) < 0:
        raise InvalidArgumentError(f"a shape's lengths must not be negative, got {format_shape(shape)}")
    return kind, layout, kind.storage_bytes(math.prod(shape)) if layout is EncodingType.DENSE_ROW_MAJOR else 0


def check_view(view: Ref, name: str, element_type: int, shape: tuple[int, ...], encoding: int = 1) -> None:
    """Raises unless a view has the element type, encoding and shape that a program was compiled for.

    Opaque views pass, and integers may differ in signedness.
    """
    if (
        type(view) is BufferView
        and view.shape == shape
        and view.element_type == element_type
        and view.encoding == encoding
    ):
        return
    checked = require(view, BufferView, "buffer_view")
    if checked.encoding is not EncodingType.OPAQUE and checked.encoding != encoding:
        raise InvalidArgumentError(
            f"{name} encoding mismatch; expected {encoding:08X} but have {int(checked.encoding):08X}"
        )
    have = checked.element_type
    if have != element_type and not have.is_opaque:
        expected = ElementType(element_type)
        if not (have.is_integer and expected.is_integer and have.bits == expected.bits):
            raise InvalidArgumentError(
                f"{name} element type mismatch; expected {expected.short_name} ({element_type:08X}) but have "
                f"{have.short_name} ({int(have):08X})"
            )
    if len(checked.shape) != len(shape):
        raise InvalidArgumentError(
            f"{name} shape rank mismatch; expected {_rank(shape)} but have {_rank(checked.shape)}; "
            f"expected shape `{format_shape(shape)}`, actual shape `{format_shape(checked.shape)}`"
        )
    for axis, (actual, wanted) in enumerate(zip(checked.shape, shape, strict=True)):
        if actual != wanted:
            raise InvalidArgumentError(
                f"{name} shape dimension {axis} mismatch; expected {wanted} but have {actual}; "
                f"expected shape `{format_shape(shape)}`, actual shape `{format_shape(checked.shape)}`"
            )


def check_apart(storages: Sequence[Ref], inputs: Sequence[Ref], reuses: Sequence[Sequence[int]]) -> None:
    """Raises unless there is a storage for each result, apart in memory from the other storages and the inputs.

    Args:
        storages, inputs: the views; other values are ignored.
        reuses: for each storage, the numbers of the inputs whose whole memory it may share.
    """
    if not isinstance(storages, (tuple, list)) or len(storages) != len(reuses):
        came = type(storages).__name__ + (f" of {len(storages)}" if isinstance(storages, (tuple, list)) else "")
        raise InvalidArgumentError(f"out takes a tuple of {len(reuses)} buffer views, one for each result, got {came}")
    for number, storage in enumerate(storages):
        if not isinstance(storage, BufferView):
            continue  # its type is checked elsewhere
        buffer = storage.buffer
        for position, view in enumerate(inputs):
            if not isinstance(view, BufferView) or not view.buffer.overlaps(buffer):
                continue
            if position in reuses[number] and (view.buffer.offset, view.buffer.size) == (buffer.offset, buffer.size):
                continue
            raise InvalidArgumentError(
                f"out for result {number} shares memory with argument {position}, which the program may read later; "
                "give another buffer"
            )
        for other in storages[:number]:
            if isinstance(other, BufferView) and other.buffer.overlaps(buffer):
                raise InvalidArgumentError(f"out for result {number} shares memory with that for another result")


def _rank(shape: tuple[int, ...]) -> str:
    return f"{len(shape)}{'' if shape else ' (scalar)'}"


def trace_views(context: DeviceContext, key: str, views: Sequence[Ref]) -> None:
    """Prints views with a heading to standard error."""
    lines = [f"=== {key} ==="]
    for ref in views:
        view = require(ref, BufferView, "buffer_view")
        data = read_bytes(context.beside(view.buffer), view.buffer, 0, view.byte_length)
        array = view.element_type.unpack(data, view.shape)
        lines.append(f"{format_shape_and_type(view.shape, view.element_type)}={array}")
    print("\n".join(lines), end="\n\n", file=sys.stderr)
