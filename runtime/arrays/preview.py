"""Previews of arrays in notebooks, which wait for no long work and copy no large array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...base.notebook import html_table
from ...status import DeadlineExceededError, PumiceError

if TYPE_CHECKING:
    from .array import DeviceArray

_PATIENCE: Final = 0.1
"""Seconds of waiting for the contents."""
_ENDS: Final = 4
"""Elements that are shown at each end."""


def mimebundle(array: DeviceArray) -> dict[str, str]:
    """Returns a table as HTML, and plain text: without it a notebook would call ``repr``, which waits."""
    plain = array.head()
    try:
        elements = _ends(array)
        plain = repr(array)
    except DeadlineExceededError:
        elements = "not read: work on the device is under way"
    except PumiceError as error:
        elements = f"not read: {error}"
    rows = [
        ("shape", str(array.shape)),
        ("dtype", str(array.dtype)),
        ("device", array.device.name),
        ("bytes", f"{array.nbytes:,}"),
        ("elements", elements),
    ]
    return {"text/plain": plain, "text/html": html_table(("", ""), rows, title="DeviceArray", texts=("",))}


def _ends(array: DeviceArray) -> str:
    """Returns the first and last elements in C order; raises DeadlineExceededError after ``_PATIENCE``."""
    array._check_open()
    array.wait(_PATIENCE)
    if not array.buffer.host_visible:  # the copies run after everything submitted so far
        array.device.stream.wait(array.device.submitted, _PATIENCE)
    flat = array.reshape(-1)
    parts = [flat] if array.size <= 2 * _ENDS else [flat[:_ENDS], flat[-_ENDS:]]
    return ", …, ".join(", ".join(map(str, part.numpy())) for part in parts)
