"""C programs of modules as shared libraries, called from Python through what their headers declare."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from support.codegen.c_programs import build

from pumice.base.closeable import Closeable

Array: TypeAlias = npt.NDArray[Any]


class CLibrary(Closeable):
    """A program on a device of its own. Use it as a context manager.

    Args:
        folder: for its files.
        module: a compiled module.
    """

    def __init__(self, folder: Path, module: bytes) -> None:
        self._library = ctypes.CDLL(str(build(folder, module, flags=("-O0", "-shared", "-fPIC"))))
        declared = re.search(r"PROGRAM_MAX_RANK = (\d+)", (folder / "program.h").read_text())
        assert declared is not None
        self._tensor = _tensor_of(int(declared[1]))
        self._program = ctypes.c_void_p()
        self._library.program_error.restype = ctypes.c_char_p
        try:
            self._check(self._library.program_create(None, ctypes.byref(self._program)))
        except BaseException:
            self.close()
            raise

    def call(self, function: str, arguments: Sequence[Array], like: Sequence[Array]) -> list[Array]:
        """The results, whose dtypes and shapes are those of ``like``, in buffers that the program makes."""
        outputs = (self._tensor * len(like))()
        try:
            self._call(function, arguments, outputs)
            return [self._read(*pair) for pair in zip(outputs, like, strict=True)]
        finally:
            self._destroy(outputs)

    def call_into(self, function: str, arguments: Sequence[Array], storages: Sequence[Array]) -> list[Array]:
        """The results, in buffers of the caller that hold what ``storages`` do; none is allocated in a second call."""
        outputs = (self._tensor * len(storages))()
        try:
            for output, storage in zip(outputs, storages, strict=True):
                self._describe(output, storage)
                output.buffer = self._buffer(storage)
            for _ in range(2):
                before = self._library.program_allocation_count(self._program)
                self._call(function, arguments, outputs)
            assert self._library.program_allocation_count(self._program) == before
            return [self._read(*pair) for pair in zip(outputs, storages, strict=True)]
        finally:
            self._destroy(outputs)

    def _call(self, function: str, arguments: Sequence[Array], outputs: ctypes.Array[Any]) -> None:
        inputs = (self._tensor * len(arguments))()
        held = [np.ascontiguousarray(argument).reshape(argument.shape) for argument in arguments]
        for tensor, array in zip(inputs, held, strict=True):
            self._describe(tensor, array)
            tensor.data = array.ctypes.data
            tensor.size = array.nbytes
        self._check(getattr(self._library, f"program_{function}")(self._program, inputs, outputs))

    @staticmethod
    def _describe(tensor: Any, array: Array) -> None:
        tensor.rank = array.ndim
        for axis, length in enumerate(array.shape):
            tensor.shape[axis] = length

    def _buffer(self, array: Array) -> int | None:
        made = ctypes.c_void_p()
        size, data = ctypes.c_uint64(array.nbytes), array.tobytes()
        self._check(self._library.program_buffer_create(self._program, size, ctypes.byref(made)))
        self._check(self._library.program_buffer_write(self._program, made, ctypes.c_uint64(0), data, size))
        return made.value

    def _read(self, output: Any, like: Array) -> Array:
        assert tuple(output.shape[: output.rank]) == like.shape
        data = ctypes.create_string_buffer(max(1, like.nbytes))
        buffer, size = ctypes.c_void_p(output.buffer), ctypes.c_uint64(like.nbytes)
        offset = ctypes.c_uint64(output.offset)
        self._check(self._library.program_buffer_read(self._program, buffer, offset, data, size))
        return np.frombuffer(data.raw[: like.nbytes], like.dtype).reshape(like.shape)

    def _destroy(self, outputs: ctypes.Array[Any]) -> None:
        for output in outputs:
            if output.buffer:
                self._library.program_buffer_destroy(self._program, ctypes.c_void_p(output.buffer))

    def _check(self, status: int) -> None:
        assert status == 0, self._library.program_error(self._program).decode()

    def close(self) -> None:
        """Destroys the program."""
        self._library.program_destroy(self._program)


def _tensor_of(max_rank: int) -> type[ctypes.Structure]:
    """The structure ``program_tensor`` of the header."""

    class Tensor(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p),
            ("buffer", ctypes.c_void_p),
            ("offset", ctypes.c_uint64),
            ("size", ctypes.c_uint64),
            ("rank", ctypes.c_uint32),
            ("shape", ctypes.c_int64 * max_rank),
        )

    return Tensor
