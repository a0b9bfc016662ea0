"""Opens the Vulkan driver while the program is still being imported."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

# The name that programs using a device import; compilers write names near the start of a module.
_USES_DEVICE: Final = b"hal."
_LOOKED_AT: Final = 1 << 20
_REFERENCE: Final = "reference"


@contextlib.contextmanager
def opening_driver(devices: Sequence[str], validation: bool | None) -> Iterator[None]:
    """Opens the process's driver on another thread meanwhile.

    Loading and querying a driver takes tens of milliseconds, in which the interpreter can import. Code that needs the
    driver waits for it, and gets its errors.
    """
    uris = devices or [os.environ.get("PUMICE_DEVICE", "")]
    if all(uri == _REFERENCE for uri in uris):
        yield
        return
    thread = threading.Thread(target=_open_driver, args=(validation,), name="pumice-driver")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def uses_device(path: str) -> bool:
    """Whether a module appears to use a device."""
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        return _USES_DEVICE in file.read(_LOOKED_AT)
    return False


def _open_driver(validation: bool | None) -> None:
    with contextlib.suppress(Exception):  # the thread that needs the driver gets the error
        from ...hal_vulkan.instance.driver import shared_driver

        shared_driver(validation=validation)
