"""Exports of the ``hal`` module about buffer views."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, TextIO

from ....formats.element_type import format_shape
from ....hal_vulkan import Buffer, BufferView, Device, ElementType, EncodingType
from ....status import InvalidArgumentError, OutOfRangeError
from ....vm.native.module import export
from ...values.format import format_value
from .buffer import HalBuffer, check_buffer, subspan
from .device_table import DeviceTable
from .file import read_bytes
from .reference import Ref, require, text_of

_MAX_SHAPES: Final = 1024


class BufferViewExports(DeviceTable):
    """``hal.buffer_view.*``."""

    def __init__(self, devices: Sequence[Device], trace: TextIO | None = None) -> None:
        super().__init__(devices)
        self._trace = trace
        self._shapes: dict[tuple[int, int, tuple[int, ...]], tuple[ElementType, EncodingType, int]] = {}

    @export("buffer_view.create", "0rIIiiCID_r")
    def buffer_view_create(
        self, buffer: Ref, offset: int, length: int, element_type: int, encoding: int, shape: tuple[int, ...]
    ) -> BufferView:
        """A view of a range of a buffer."""
        known = self._shapes.get((element_type, encoding, shape))
        if known is None:
            known = self._shape(element_type, encoding, shape)
        if type(buffer) is not HalBuffer or buffer._closed or offset or length != buffer.size:
            buffer = subspan(check_buffer(buffer, "buffer_view.create"), offset, length)
        if known[2] > buffer.size:
            raise OutOfRangeError(
                f"buffer_view.create: {known[2]} bytes of elements do not fit the range of {buffer.size} bytes"
            )
        return BufferView.of_checked(buffer, shape, known[0], known[1])

    def _shape(self, element_type: int, encoding: int, shape: tuple[int, ...]) -> tuple[ElementType, EncodingType, int]:
        kind = ElementType(element_type)
        try:
            layout = EncodingType(encoding)
        except ValueError:
            raise InvalidArgumentError(
                f"encoding type {encoding:#010x} is not known; 1 is dense row-major, 0 opaque"
            ) from None
        if shape and min(shape) < 0:
            raise InvalidArgumentError(f"a shape's lengths must not be negative, got {format_shape(shape)}")
        count = 1
        for length in shape:
            count *= length
        known = (kind, layout, kind.storage_bytes(count) if layout is EncodingType.DENSE_ROW_MAJOR else 0)
        if len(self._shapes) >= _MAX_SHAPES:
            self._shapes.clear()
        self._shapes[element_type, encoding, shape] = known
        return known

    @export("buffer_view.assert", "0rriiCID_v")
    def buffer_view_assert(
        self, view: Ref, message: Ref, element_type: int, encoding: int, shape: tuple[int, ...]
    ) -> None:
        """Raises unless a view has the element type, encoding and shape that a program was compiled for."""
        if (
            type(view) is BufferView
            and view.shape == shape
            and view.element_type == element_type
            and view.encoding == encoding
        ):
            return
        _check_view_is(view, text_of(message, "message"), element_type, encoding, shape)

    @export("buffer_view.buffer", "0r_r")
    def buffer_view_buffer(self, view: Ref) -> Buffer:
        """The view's buffer."""
        return view.buffer if type(view) is BufferView else require(view, BufferView, "buffer_view").buffer

    @export("buffer_view.element_type", "0r_i")
    def buffer_view_element_type(self, view: Ref) -> int:
        """The code of the element type."""
        return int(require(view, BufferView, "buffer_view").element_type)

    @export("buffer_view.encoding_type", "0r_i")
    def buffer_view_encoding_type(self, view: Ref) -> int:
        """The code of the encoding."""
        return int(require(view, BufferView, "buffer_view").encoding)

    @export("buffer_view.rank", "0r_i")
    def buffer_view_rank(self, view: Ref) -> int:
        """Number of axes."""
        return len(require(view, BufferView, "buffer_view").shape)

    @export("buffer_view.dim", "0ri_I")
    def buffer_view_dim(self, view: Ref, index: int) -> int:
        """The length of an axis; 0 if there is no such axis, as in other runtimes."""
        shape = require(view, BufferView, "buffer_view").shape
        return shape[index] if 0 <= index < len(shape) else 0

    @export("buffer_view.trace", "0rCrD_v")
    def buffer_view_trace(self, key: Ref, views: tuple[Ref, ...]) -> None:
        """Prints views with a heading."""
        lines = [f"=== {text_of(key, 'key')} ==="]
        for ref in views:
            view = require(ref, BufferView, "buffer_view")
            data = read_bytes(self.device_context(view.buffer.device), view.buffer, 0, view.byte_length)
            array = view.element_type.unpack(data, view.shape)
            lines.append(format_value(array, max_elements=None, element_type=view.element_type))
        print("\n".join(lines), end="\n\n", file=sys.stderr if self._trace is None else self._trace)


def _check_view_is(view: Ref, name: str, element_type: int, encoding: int, shape: tuple[int, ...]) -> None:
    """The slow path of ``buffer_view.assert``: opaque views pass, integers may differ in signedness."""
    found = require(view, BufferView, "buffer_view")
    if found.encoding is not EncodingType.OPAQUE and found.encoding != encoding:
        raise InvalidArgumentError(
            f"{name} encoding mismatch; expected {encoding:08X} but have {int(found.encoding):08X}"
        )
    have = found.element_type
    if have != element_type and not have.is_opaque:
        expected = ElementType(element_type)
        if not (have.is_integer and expected.is_integer and have.bits == expected.bits):
            raise InvalidArgumentError(
                f"{name} element type mismatch; expected {expected.short_name} ({element_type:08X}) but have "
                f"{have.short_name} ({int(have):08X})"
            )
    if len(found.shape) != len(shape):
        raise InvalidArgumentError(
            f"{name} shape rank mismatch; expected {_rank(shape)} but have {_rank(found.shape)}; "
            f"expected shape `{format_shape(shape)}`, actual shape `{format_shape(found.shape)}`"
        )
    for axis, (actual, wanted) in enumerate(zip(found.shape, shape, strict=True)):
        if actual != wanted:
            raise InvalidArgumentError(
                f"{name} shape dimension {axis} mismatch; expected {wanted} but have {actual}; "
                f"expected shape `{format_shape(shape)}`, actual shape `{format_shape(found.shape)}`"
            )


def _rank(shape: tuple[int, ...]) -> str:
    return f"{len(shape)}{'' if shape else ' (scalar)'}"
