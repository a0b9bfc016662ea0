"""Exports of the ``hal`` module about buffers and buffer views."""

from __future__ import annotations

import sys
from typing import Final

from ....hal.buffer import Buffer
from ....hal.buffer_view import BufferView
from ....hal.program import check_buffer, subspan
from ....hal.programs.checks import Ref, require
from ....hal.programs.device_context import DeviceContext, DeviceTable
from ....hal.programs.file import read_bytes
from ....hal.programs.transfers import load_word, store_word
from ....hal.programs.views import (
    check_compatible,
    check_view,
    create_view,
    dim_of,
    discard,
    element_type_of,
    encoding_of,
    is_terminal,
    preserve,
    rank_of,
)
from ....vm.native.module import export
from ...values.format import format_value
from .reference import text_of

_and: Final = int.__and__  # IntFlag's operators are Python functions


class BufferExports(DeviceTable):
    """``hal.buffer.*`` and ``hal.buffer_view.*``."""

    @export("buffer.assert", "0rrrIii_v")
    def buffer_assert(
        self, buffer: Ref, message: Ref, allocator: Ref, length: int, memory_types: int, usage: int
    ) -> None:
        """Raises unless a buffer has the length, memory type and usage that a program was compiled for."""
        try:  # the usual case inline: a program asserts each buffer argument
            if (
                buffer.size >= length
                and _and(buffer.memory_type, memory_types) == memory_types
                and _and(buffer.usage, usage) == usage
                and not buffer._closed
                and buffer.parent is None
            ):
                return
        except (AttributeError, TypeError):
            pass  # not a buffer: the check has the message
        check_compatible(buffer, text_of(message, "message"), length, memory_types, usage)

    @export("buffer.length", "0r_I")
    def buffer_length(self, buffer: Ref) -> int:
        """Returns bytes."""
        return check_buffer(buffer, "buffer.length").size

    @export("buffer.subspan", "0rII_r")
    def buffer_subspan(self, buffer: Ref, offset: int, size: int) -> Buffer:
        """Returns a part of a buffer."""
        return subspan(check_buffer(buffer, "buffer.subspan"), offset, size)

    @export("buffer.load", "0rIi_i")
    def buffer_load(self, buffer: Ref, offset: int, size: int) -> int:
        """Returns up to four bytes as an integer, zero-extended."""
        return load_word(self._context_of(buffer, "buffer.load"), buffer, offset, size)

    @export("buffer.store", "0irIi_v")
    def buffer_store(self, value: int, buffer: Ref, offset: int, size: int) -> None:
        """Writes the low ``size`` bytes of a value."""
        store_word(self._context_of(buffer, "buffer.store"), value, buffer, offset, size)

    def _context_of(self, buffer: Ref, subject: str) -> DeviceContext:
        return self.device_context(check_buffer(buffer, subject).device)

    @export("buffer.allocation.preserve", "0r_v")
    def buffer_allocation_preserve(self, buffer: Ref) -> None:
        """Adds an owner."""
        preserve(buffer)

    @export("buffer.allocation.discard", "0r_i")
    def buffer_allocation_discard(self, buffer: Ref) -> int:
        """Removes an owner; 1 if it was the last. The caller keeps its own buffers."""
        return discard(buffer)

    @export("buffer.allocation.is_terminal", "0r_i")
    def buffer_allocation_is_terminal(self, buffer: Ref) -> int:
        """Whether there is a single owner."""
        return is_terminal(buffer)

    @export("buffer_view.create", "0rIIiiCID_r")
    def buffer_view_create(
        self, buffer: Ref, offset: int, length: int, element_type: int, encoding: int, shape: tuple[int, ...]
    ) -> BufferView:
        """Returns a view of a range of a buffer."""
        return create_view(buffer, element_type, shape, offset=offset, length=length, encoding=encoding)

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
        check_view(view, text_of(message, "message"), element_type, shape, encoding)

    @export("buffer_view.buffer", "0r_r")
    def buffer_view_buffer(self, view: Ref) -> Buffer:
        """Returns the view's buffer."""
        return view.buffer if type(view) is BufferView else require(view, BufferView, "buffer_view").buffer

    @export("buffer_view.element_type", "0r_i")
    def buffer_view_element_type(self, view: Ref) -> int:
        """Returns the code of the element type."""
        return element_type_of(view)

    @export("buffer_view.encoding_type", "0r_i")
    def buffer_view_encoding_type(self, view: Ref) -> int:
        """Returns the code of the encoding."""
        return encoding_of(view)

    @export("buffer_view.rank", "0r_i")
    def buffer_view_rank(self, view: Ref) -> int:
        """Returns the number of axes."""
        return rank_of(view)

    @export("buffer_view.dim", "0ri_I")
    def buffer_view_dim(self, view: Ref, index: int) -> int:
        """Returns the length of an axis; 0 if there is no such axis, as in other runtimes."""
        return dim_of(view, index)

    @export("buffer_view.trace", "0rCrD_v")
    def buffer_view_trace(self, key: Ref, views: tuple[Ref, ...]) -> None:
        """Prints views with a heading to standard error."""
        lines = [f"=== {text_of(key, 'key')} ==="]
        for ref in views:
            view = require(ref, BufferView, "buffer_view")
            data = read_bytes(self.device_context(view.buffer.device), view.buffer, 0, view.byte_length)
            array = view.element_type.unpack(data, view.shape)
            lines.append(format_value(array, max_elements=None, element_type=view.element_type))
        print("\n".join(lines), end="\n\n", file=sys.stderr)
