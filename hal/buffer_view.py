"""Buffer views: a buffer with a shape, an element type and an encoding.

A view owns no native object and keeps its buffer alive. Thread rule: immutable, except for the buffer's contents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..formats.element_type import ElementType, EncodingType, format_shape_and_type
from ..status import InvalidArgumentError, OutOfRangeError, UnimplementedError
from .buffer import Buffer


class BufferView:
    """A shaped, typed view of a buffer.

    Attributes:
        buffer: the bytes; for a part of a buffer pass a ``subspan``.
        element_type: the type of every element, sub-byte, bf16, fp8 and complex types included.
        encoding: the layout of the elements.
    """

    __slots__ = ("buffer", "element_type", "encoding", "shape")

    def __init__(
        self,
        buffer: Buffer,
        shape: Sequence[int],
        element_type: ElementType,
        encoding: EncodingType = EncodingType.DENSE_ROW_MAJOR,
    ) -> None:
        """Views a buffer.

        Raises:
            InvalidArgumentError: a length is negative.
            OutOfRangeError: the buffer is shorter than the elements (for dense encodings).
            ClosedError: the buffer was closed.
        """
        lengths = tuple(int(n) for n in shape)
        if lengths and min(lengths) < 0:
            raise InvalidArgumentError(f"a shape's lengths must not be negative, got {lengths}")
        self.buffer: Buffer = buffer
        self.shape: tuple[int, ...] = lengths
        self.element_type: ElementType = element_type
        self.encoding: EncodingType = encoding
        if buffer.is_closed:
            buffer.subspan(0, 0)  # raises
        if encoding is EncodingType.DENSE_ROW_MAJOR and self.byte_length > buffer.size:
            raise OutOfRangeError(
                f"{format_shape_and_type(lengths, element_type)} takes {self.byte_length} bytes; the buffer has "
                f"{buffer.size}"
            )

    @classmethod
    def of_checked(
        cls, buffer: Buffer, shape: tuple[int, ...], element_type: ElementType, encoding: EncodingType
    ) -> BufferView:
        """Returns a view of a buffer that the caller has checked to be open and long enough."""
        view = cls.__new__(cls)
        view.buffer = buffer
        view.shape = shape
        view.element_type = element_type
        view.encoding = encoding
        return view

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def element_count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def byte_length(self) -> int:
        """Bytes of the elements, densely packed; the whole buffer for opaque encodings."""
        if self.encoding is not EncodingType.DENSE_ROW_MAJOR:
            return self.buffer.size
        return self.element_type.storage_bytes(self.element_count)

    def byte_offset(self, indices: Sequence[int]) -> int:
        """Returns the bytes from the buffer's start to the element at ``indices``.

        Raises:
            OutOfRangeError: the number of indices is wrong, or one is outside its axis.
            UnimplementedError: elements share a byte, or the encoding is not dense.
        """
        self._require_dense("byte_offset")
        if self.element_type.is_sub_byte:
            raise UnimplementedError(f"elements of {self.element_type.short_name} share bytes and have no byte offsets")
        if len(indices) != self.rank or any(not 0 <= i < n for i, n in zip(indices, self.shape, strict=False)):
            raise OutOfRangeError(f"indices {tuple(indices)} do not name an element of shape {self.shape}")
        linear = 0
        for index, length in zip(indices, self.shape, strict=True):
            linear = linear * length + index
        return linear * self.element_type.byte_count

    def subview(self, starts: Sequence[int], lengths: Sequence[int]) -> BufferView:
        """Returns the contiguous part with these starts and lengths for each axis.

        Raises:
            OutOfRangeError: the part is not within the view.
            InvalidArgumentError: the part is not contiguous.
        """
        self._require_dense("subview")
        if len(starts) != self.rank or len(lengths) != self.rank:
            raise OutOfRangeError(f"subview takes {self.rank} starts and lengths, got {len(starts)} and {len(lengths)}")
        extended = False
        for start, length, whole in zip(starts, lengths, self.shape, strict=True):
            if start < 0 or length < 0 or start + length > whole:
                raise OutOfRangeError(f"[{start}, {start + length}) is outside an axis of {whole}")
            if extended and length != whole:
                raise InvalidArgumentError(
                    f"starts {tuple(starts)}, lengths {tuple(lengths)} of {self.shape} is not contiguous"
                )
            extended = extended or length != 1
        if 0 in lengths:
            return BufferView(self.buffer.subspan(0, 0), lengths, self.element_type, self.encoding)
        offset = self.byte_offset(starts)
        size = self.element_type.storage_bytes(math.prod(lengths))
        return BufferView(self.buffer.subspan(offset, size), lengths, self.element_type, self.encoding)

    def reshape(self, shape: Sequence[int], element_type: ElementType | None = None) -> BufferView:
        """Returns the same bytes with another shape, and optionally another element type."""
        return BufferView(self.buffer, shape, element_type or self.element_type, self.encoding)

    def read(self) -> npt.NDArray[np.generic]:
        """Returns the elements as a NumPy array, from host-visible memory.

        Raises:
            FailedPreconditionError: the memory is not host-visible.
            InvalidArgumentError: NumPy has no dtype for the element type.
            UnimplementedError: the encoding is not dense.
        """
        self._require_dense("read")
        return self.element_type.unpack(self.buffer.read(0, self.byte_length), self.shape)

    def write(self, array: npt.NDArray[np.generic]) -> None:
        """Writes a NumPy array of this shape and the element type's dtype, to host-visible memory."""
        self._require_dense("write")
        if array.shape != self.shape:
            raise InvalidArgumentError(f"expected shape {self.shape}, got {array.shape}")
        self.buffer.write(self.element_type.pack(array))

    def _require_dense(self, subject: str) -> None:
        if self.encoding is not EncodingType.DENSE_ROW_MAJOR:
            raise UnimplementedError(f"{subject} needs a dense row-major encoding; this view's is {self.encoding.name}")

    def __repr__(self) -> str:
        return f"<BufferView {format_shape_and_type(self.shape, self.element_type)} of {self.buffer!r}>"
