"""A driver that is installed with pip: the package ``pumice_lavapipe``, which ``pumice vendor-driver`` builds.

It has a Vulkan loader, for machines without one, and a driver, which is added to the machine's drivers while an
instance is created. A second copy of the driver is for instances with windows: it uses the window-system libraries that
the process has loaded. ``docs/design/vendored-driver.md`` explains the design.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...base.install_hints import DRIVER_VARIABLES

_PACKAGE: Final = "pumice_lavapipe"
# Mesa's name for the manifest of the machine's own lavapipe.
_ITS_LIKE: Final = "lvp_icd*"


def vendored_loader() -> Path | None:
    """Returns the Vulkan loader of the package; ``None`` without it."""
    folder = _folder()
    return None if folder is None else folder / "lib" / "libvulkan.so.1"


def vendored_manifest() -> Path | None:
    """Returns the manifest of the package's driver; ``None`` without it, or if the user lists the drivers."""
    return _manifest(_PACKAGE)


def _manifest(name: str) -> Path | None:
    folder = _folder()
    return None if folder is None or any(map(os.environ.get, DRIVER_VARIABLES)) else folder / f"{name}.json"


@contextlib.contextmanager
def vendored_driver(*, windows: bool = False) -> Iterator[None]:
    """Makes the Vulkan loader find the package's driver, in place of the machine's own lavapipe, for a ``with`` block.

    It sets environment variables of the process: one thread at a time.

    Args:
        windows: whether to take the driver for windows; it is not added if it cannot load with the process's
            window-system libraries, which may be older than those it was built with.

    Source: LoaderDriverInterface.md of the Khronos Vulkan-Loader, "Additional Driver Discovery", "Driver Filtering".
    """
    manifest = _manifest(f"{_PACKAGE}_windows" if windows else _PACKAGE)
    if manifest is None or (windows and not _loads(manifest)):
        yield
        return
    before = {name: os.environ.get(name) for name in ("VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_DISABLE")}
    added, disabled = before.values()
    os.environ["VK_ADD_DRIVER_FILES"] = os.pathsep.join(filter(None, (str(manifest), added)))
    os.environ["VK_LOADER_DRIVERS_DISABLE"] = ",".join(filter(None, (disabled, _ITS_LIKE)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _loads(manifest: Path) -> bool:
    """Whether a manifest's driver finds every symbol that it needs; the driver then stays loaded."""
    import ctypes  # imported here so that programs without windows start sooner
    import json

    try:
        library = json.loads(manifest.read_bytes())["ICD"]["library_path"]
        ctypes.CDLL(str(manifest.parent / library))
    except OSError:
        return False
    return True


def _folder() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None
