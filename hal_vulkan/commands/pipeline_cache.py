"""A VkPipelineCache kept on disk, one file for each device and driver version.

The file has a header of ours (magic, SHA-256 of the driver's data), because drivers have crashed on corrupt cache data:
a file that does not match is ignored and rebuilt. Writing replaces the file atomically.
``PUMICE_CACHE=0`` switches it off; ``PUMICE_CACHE_DIR`` moves it.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Final

from ...files import cache_directory, replacing
from ...status import PumiceError
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, new

_MAGIC: Final = b"pumicePC1\n"
_DIGEST_BYTES: Final = 32
_MAX_BYTES: Final = 256 << 20
_log = logging.getLogger("pumice.pipeline_cache")


class PipelineCache:
    """The VkPipelineCache of one device. Vulkan synchronises it; it may be used from any thread."""

    def __init__(self, device: LogicalDevice, *, persistent: bool = True) -> None:
        self._device = device
        directory = cache_directory() if persistent else None
        self.path: Path | None = None
        if directory is not None:
            profile = device.profile
            self.path = (
                directory
                / "pipelines"
                / f"{profile.device_uuid}-{profile.driver_uuid}-{profile.driver_version:08x}.bin"
            )
        data = _load(self.path) if self.path else b""
        self.handle: CData = self._create(data)
        self._initial = hashlib.sha256(self._data()).digest()

    def _create(self, data: bytes) -> CData:
        info = new("VkPipelineCacheCreateInfo", initialDataSize=len(data), pInitialData=data or None)
        try:
            return self._device.create("pipeline cache", info)
        except PumiceError:
            if not data:
                raise
            _log.warning("the driver refused the pipeline cache %s; it is rebuilt", self.path)
            return self._create(b"")

    def _data(self) -> bytes:
        device = self._device
        size = ffi.new("size_t *")
        if device.fn.vkGetPipelineCacheData(device.handle, self.handle, size, ffi.NULL) < 0 or not size[0]:
            return b""
        data = ffi.new("char[]", size[0])
        if device.fn.vkGetPipelineCacheData(device.handle, self.handle, size, data) < 0:
            return b""
        return bytes(ffi.buffer(data, size[0]))

    def save(self) -> bool:
        """Writes the file if pipelines were added since it was read; returns whether. A failed write is logged."""
        if self.path is None or self._device.lost is not None:
            return False
        data = self._data()
        digest = hashlib.sha256(data).digest()
        if not data or digest == self._initial:
            return False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                file.write(_MAGIC + digest + data)
        except OSError as error:
            _log.info("the pipeline cache could not be written: %s", error)
            return False
        self._initial = digest
        return True


def _load(path: Path) -> bytes:
    """The driver's data of a cache file; empty if the file is absent, foreign, truncated or changed."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return b""
        raw = path.read_bytes()
    except OSError:
        return b""
    body = len(_MAGIC) + _DIGEST_BYTES
    data = raw[body:]
    if raw[: len(_MAGIC)] != _MAGIC or hashlib.sha256(data).digest() != raw[len(_MAGIC) : body]:
        _log.warning("the pipeline cache %s is corrupt; it is ignored and rebuilt", path)
        return b""
    return data
