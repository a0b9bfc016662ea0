"""Previews of arrays in notebooks, without long waits or copies of large arrays."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from ...base.notebook import html_table
from ...status import DeadlineExceededError, PumiceError
from .array_device import ArrayDevice
from .host_value import HostValue
from .spec import Index

_PATIENCE: Final = 0.1
"""Seconds to wait for the contents."""
_ENDS: Final = 4
"""Elements shown at each end."""


class Previewed(HostValue):
    """The base of ``DeviceArray`` that notebooks show."""

    __slots__ = ()

    device: ArrayDevice
    nbytes: int

    @abstractmethod
    def _check_open(self) -> None:
        """Raises if it was closed."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> Previewed:
        """Waits until work that writes it is done."""

    @abstractmethod
    def reshape(self, *shape: int) -> Previewed:
        """Returns a view with another shape."""

    @abstractmethod
    def __getitem__(self, index: Index) -> Previewed: ...

    def head(self) -> str:
        """Returns ``repr`` without the elements, without waiting."""
        closed = ", closed" if self.buffer.is_closed else ""
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device.name!r}{closed})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Returns a table as HTML, and plain text: without it a notebook would call ``repr``, which waits."""
        plain = self.head()
        try:
            elements = self._ends()
            plain = repr(self)
        except DeadlineExceededError:
            elements = "not read: work on the device is under way"
        except PumiceError as error:
            elements = f"not read: {error}"
        rows = [
            ("shape", str(self.shape)),
            ("dtype", str(self.dtype)),
            ("device", self.device.name),
            ("bytes", f"{self.nbytes:,}"),
            ("elements", elements),
        ]
        return {"text/plain": plain, "text/html": html_table(("", ""), rows, title="DeviceArray", texts=("",))}

    def _ends(self) -> str:
        """Returns the first and last elements in C order; raises DeadlineExceededError after ``_PATIENCE``."""
        self._check_open()
        self.wait(_PATIENCE)
        if not self.buffer.host_visible:  # the copies run after all work submitted so far
            self.device.stream.wait(self.device.submitted, _PATIENCE)
        flat = self.reshape(-1)
        parts = [flat] if self.size <= 2 * _ENDS else [flat[:_ENDS], flat[-_ENDS:]]
        return ", …, ".join(", ".join(map(str, part.numpy())) for part in parts)
