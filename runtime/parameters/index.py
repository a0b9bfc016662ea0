"""Parameters by name, with one index per scope. Programs refer to them as ``scope::key``.

    index = ParameterIndex.from_file("model.safetensors")
    index["layers.0.weight"].view()

A session's option ``parameters`` maps scopes to indices: ``{"model": index}``; ``""`` is the scope of references
without one.

Thread rule: an index does not change and may be used from any thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from ...status import AlreadyExistsError, InvalidArgumentError, NotFoundError, close_to, shorten, shown
from .entry import ParameterEntry

_T = TypeVar("_T")


class ParameterIndex(Mapping[str, ParameterEntry]):
    """The parameters of one scope, in order. A missing name raises NotFoundError with the closest names."""

    def __init__(self, entries: Iterable[ParameterEntry] = ()) -> None:
        """Creates an index of entries from one file or several.

        Raises:
            AlreadyExistsError: two entries have the same name.
        """
        self._entries: dict[str, ParameterEntry] = {}
        for entry in entries:
            if self._entries.setdefault(entry.name, entry) is not entry:
                raise AlreadyExistsError(
                    f"two parameters of one scope are named {shown(entry.name)}; rename or remove one"
                )

    @classmethod
    def from_file(cls, *paths: str | os.PathLike[str], writable: bool = False) -> ParameterIndex:
        """Maps the parameters of files: ``.irpa``, ``.safetensors``, ``.gguf``, ``.npy`` or ``.npz``.

        Do not truncate a mapped file. The parameter of a ``.npy`` file has the file's name without suffix.

        Args:
            paths: the path of one file, or the paths of all files of a split model.
            writable: whether to map the files so that programs may write their parameters back. Copies stay read-only:
                arrays of ``.npy`` files in Fortran order or big-endian.

        Raises:
            NotFoundError, PermissionDeniedError, UnavailableError: a file cannot be opened.
            InvalidArgumentError, DataLossError, IncompatibleError, UnimplementedError: a file breaks its format's
                rules, is truncated, or has an unknown version or type.
            AlreadyExistsError: two parameters have the same name.
        """
        from .files import read_parameter_file  # imports the readers of all formats

        return cls(entry for path in paths for entry in read_parameter_file(path, writable=writable))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.ArrayLike], *, writable: bool = False) -> ParameterIndex:
        """Creates parameters over NumPy arrays, in place if they are C-contiguous, else as copies.

        Args:
            arrays: the arrays by parameter name, of any dtype of plain bytes in the machine's byte order.
            writable: whether programs may write into the arrays, which then must be writeable and C-contiguous.

        Raises:
            InvalidArgumentError: an array has Python objects or another byte order, or cannot be written in place.
        """
        return cls(_entry_of(name, array, writable=writable) for name, array in arrays.items())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ``.irpa`` archive of all entries. A file at ``path`` is replaced once the archive is complete.

        Raises:
            InvalidArgumentError: the path is not that of a file, or a name is not UTF-8.
            NotFoundError, PermissionDeniedError, ResourceExhaustedError, UnavailableError: the file cannot be written.
        """
        from .irpa import write_parameter_archive

        write_parameter_archive(path, self._entries.values())

    def __getitem__(self, name: str) -> ParameterEntry:
        entry = self._entries.get(name)
        if entry is None:
            raise NotFoundError(f"no parameter is named {shown(name)}; {_suggest(name, self._entries, 'parameters')}")
        return entry

    @overload
    def get(self, name: str, /) -> ParameterEntry | None: ...

    @overload
    def get(self, name: str, /, default: ParameterEntry | _T) -> ParameterEntry | _T: ...

    def get(self, name: str, /, default: object = None) -> object:
        """Returns the entry of a name, or ``default``."""
        return self._entries.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return (
            f"<ParameterIndex of {len(self)} parameters, {sum(entry.length for entry in self._entries.values())} bytes>"
        )


ParameterScopes = Mapping[str, ParameterIndex]
"""Indices by scope; ``""`` is the scope of references without one."""


def find_scope(scopes: ParameterScopes, scope: str) -> ParameterIndex:
    """Returns the index of a scope.

    Raises:
        NotFoundError: there is no such scope; the message has the closest scopes.
    """
    index = scopes.get(scope)
    if index is None:
        raise NotFoundError(f"no parameters were given for scope {shown(scope)}; {_suggest(scope, scopes, 'scopes')}")
    return index


def _suggest(name: str, names: Iterable[str], noun: str) -> str:
    known = list(names)
    if not known:
        return f"there are no {noun} at all"
    close = close_to(name, known)
    if close:
        return f"the closest {noun}: {', '.join(map(shown, close))}"
    return f"the first {noun}: {', '.join(map(shown, known[:5]))}"


def _entry_of(name: str, value: npt.ArrayLike, *, writable: bool) -> ParameterEntry:
    where = f"parameter {shown(name)}"
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"{where}: expected something that NumPy makes an array of: {shorten(str(error))}"
        ) from None
    if array.dtype.hasobject:
        raise InvalidArgumentError(f"{where}: its elements are Python objects, not bytes; convert it to a plain dtype")
    if not array.dtype.isnative:
        raise InvalidArgumentError(
            f"{where}: expected elements in this machine's byte order, got {array.dtype}; convert it with astype()"
        )
    if writable and not (array.flags.c_contiguous and array.flags.writeable):
        raise InvalidArgumentError(f"{where}: expected a writeable C-contiguous array to write to; pass a copy of it")
    stored = np.ascontiguousarray(array)
    # As uint8, because memoryviews do not support ml_dtypes' formats; an array without bytes cannot be viewed.
    data = stored.reshape(-1).view(np.uint8).data if stored.nbytes else memoryview(bytearray())
    return ParameterEntry.of_data(
        name, data if writable else data.toreadonly(), dtype=array.dtype, shape=array.shape, type_name=str(array.dtype)
    )
