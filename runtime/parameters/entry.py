"""One parameter: a name and its bytes, in a mapped file, in a NumPy array, or as a repeated pattern.

The readers of parameter files make entries; an index (``index.py``) holds them by name. No entry copies its bytes.

Thread rule: entries are immutable; the caller orders writes to the bytes of writable entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import DataLossError, FailedPreconditionError, InvalidArgumentError, PermissionDeniedError, shown

_SPLAT_LENGTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, eq=False)
class ParameterEntry:
    """A named run of bytes.

    Attributes:
        name: the key that programs use. Bytes that are not UTF-8 are kept as lone surrogates (``surrogateescape``).
        length: the length in bytes.
        dtype: the NumPy dtype of an element, or ``None`` where the file does not say or NumPy has none.
        shape: the lengths in elements, outermost dimension first, or ``None`` where the file does not say.
        type_name: the element type as the file writes it (``"F32"``, ``"Q4_K"``, ``"float32"``), or ``""``.
        splat: the 1, 2, 4, 8 or 16 bytes that are repeated over the length, or ``None`` for an entry with data.
    """

    name: str
    length: int
    dtype: np.dtype[np.generic] | None = None
    shape: tuple[int, ...] | None = None
    type_name: str = ""
    splat: bytes | None = None
    _metadata: memoryview | bytes = b""
    _data: memoryview | None = field(default=None, repr=False)

    @classmethod
    def of_data(
        cls,
        name: str,
        data: memoryview,
        *,
        dtype: np.dtype[np.generic] | None = None,
        shape: tuple[int, ...] | None = None,
        type_name: str = "",
        metadata: memoryview | bytes = b"",
    ) -> ParameterEntry:
        """Creates an entry over ``data``, a one-dimensional view of bytes, in place."""
        return cls(name, data.nbytes, dtype, shape, type_name, None, metadata, data)

    @classmethod
    def of_splat(cls, name: str, pattern: bytes, length: int, *, metadata: memoryview | bytes = b"") -> ParameterEntry:
        """Creates an entry of ``length`` bytes that repeat ``pattern``; the bytes are not allocated.

        Raises:
            InvalidArgumentError: the pattern's length is not 1, 2, 4, 8 or 16, or does not divide ``length``.
        """
        if len(pattern) not in _SPLAT_LENGTHS:
            raise InvalidArgumentError(
                f"parameter {shown(name)}: a splat's pattern has 1, 2, 4, 8 or 16 bytes, got {len(pattern)}"
            )
        if length < 0 or length % len(pattern):
            raise InvalidArgumentError(
                f"parameter {shown(name)}: a splat's length is a multiple of its {len(pattern)}-byte pattern, got "
                f"{length}"
            )
        return cls(name, length, splat=pattern, _metadata=metadata)

    @property
    def metadata(self) -> bytes:
        """Bytes that the archive keeps with the entry, whose meaning is up to its writer and reader."""
        return bytes(self._metadata)

    @property
    def writable(self) -> bool:
        """Whether ``writable_view`` returns the bytes."""
        return self._data is not None and not self._data.readonly

    def view(self) -> memoryview:
        """Returns the bytes in place, read-only. The view keeps the file's mapping or the array alive.

        Raises:
            FailedPreconditionError: the entry is a splat, which has no bytes in memory; repeat ``splat``.
        """
        return self._require_data().toreadonly()

    def writable_view(self) -> memoryview:
        """Returns the bytes in place, writable.

        Raises:
            FailedPreconditionError: the entry is a splat.
            PermissionDeniedError: the file or the arrays were not opened with ``writable=True``.
        """
        data = self._require_data()
        if data.readonly:
            raise PermissionDeniedError(
                f"parameter {shown(self.name)} is read-only; open its file or arrays with writable=True"
            )
        return data

    def _require_data(self) -> memoryview:
        if self._data is None:
            raise FailedPreconditionError(
                f"parameter {shown(self.name)} is a splat of {self.length} bytes, which has no bytes in memory; repeat "
                "its pattern"
            )
        return self._data


def checked_slice(data: memoryview, offset: int, length: int, subject: str) -> memoryview:
    """Returns bytes ``[offset, offset + length)`` of ``data``, in place; DataLossError if they go past the end."""
    if offset < 0 or length < 0 or offset + length > len(data):
        raise DataLossError(
            f"{subject}: expected bytes [{offset}, {offset + length}) within {len(data)}; the file is truncated or "
            "damaged, get it again"
        )
    return data[offset : offset + length]


def element_count(shape: Sequence[int], limit: int) -> int:
    """Returns the product of ``shape``, or a number above ``limit``: forged dimensions may be very large."""
    if 0 in shape:
        return 0
    count = 1
    for dimension in shape:
        count *= min(dimension, limit + 1)
        if count > limit:
            return limit + 1
    return count


def decode_name(name: bytes | memoryview) -> str:
    """Decodes a name in a file or module; bytes that are not UTF-8 survive a round trip."""
    return bytes(name).decode("utf-8", "surrogateescape")
