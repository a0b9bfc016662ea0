"""The protocols of NumPy, DLPack, JAX and Python's numbers for arrays on a device."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ...hal.buffer import Buffer


class HostValue:
    """The base of ``DeviceArray``: its contents as values of the host.

    Attributes:
        buffer, shape, dtype: the same as in ``DeviceArray``.
    """

    __slots__ = ()

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-dimensional array")
        return self.shape[0]

    @abstractmethod
    def numpy(self, out: np.ndarray | None = None) -> np.ndarray:
        """Returns a copy of the contents."""

    @abstractmethod
    def map(self) -> np.ndarray:
        """Returns the memory itself."""

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a DeviceArray cannot become a NumPy array without a copy; x.map() is the memory itself")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Returns a DLPack capsule of host memory: the device's own if host-visible and no copy is requested.

        Raises:
            BufferError: another device type than the CPU is requested, or DLPack does not know the dtype.
        """
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError(f"a DeviceArray is exported as CPU memory (1, 0), not as DLPack device {dl_device}")
        if self.buffer.host_visible and not copy:
            array = self.map()
        elif copy is False:
            raise BufferError("this array's memory is not visible to the host; export it with copy=True")
        else:
            array = self.numpy()
        del stream
        if max_version is None or np.lib.NumpyVersion(np.__version__) < "2.1.0":
            return array.__dlpack__()
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __jax_array__(self) -> object:
        """Returns a copy for functions of JAX; in a traced function it becomes a constant."""
        import jax.numpy  # JAX called this

        return jax.numpy.asarray(self.numpy())

    def tolist(self) -> object:
        """Returns the contents as nested lists of Python numbers."""
        return self.numpy().tolist()

    def item(self) -> object:
        """Returns the only element as a Python number."""
        return self.numpy().item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth value of an array of several elements, or of none, is ambiguous; use x.numpy()")
        return bool(self.item())

    def __format__(self, format_spec: str) -> str:
        """Formats an array of rank 0 as its number: ``f"{loss:.3f}"``."""
        return super().__format__(format_spec) if self.shape else format(self.item(), format_spec)

    def __float__(self) -> float:
        return float(self.numpy().item())

    def __int__(self) -> int:
        return int(self.numpy().item())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> NoReturn:
        # Not None: Python would then try to concatenate two sequences, and raise a misleading error.
        raise TypeError(
            f"NumPy's {ufunc.__name__} does not take arrays of a device: give it x.numpy(), a copy on the host, or "
            "compute on the device, as pumice.ElementwiseKernel does"
        )

    def __eq__(self, other: object) -> bool:
        raise TypeError("arrays on a device are not compared: compare x.numpy(), or `x is y` for being the same array")

    __hash__: Callable[[], int] = object.__hash__  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        raise TypeError("an array on a device is not pickled: pickle x.numpy(), and give that to device.asarray()")
