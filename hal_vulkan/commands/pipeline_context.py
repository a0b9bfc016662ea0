"""What the pipelines of one device share: descriptor set layouts, pipeline layouts and the pipeline cache.

The VkPipelineCache is kept on disk, one file for each device and driver version. The file has a header of ours (magic,
SHA-256 of the driver's data), because drivers have crashed on corrupt cache data: a file that does not match is ignored
and rebuilt. Writing replaces the file atomically. ``PUMICE_CACHE=0`` switches it off; ``PUMICE_CACHE_DIR`` moves it.

Thread rule: any thread; it locks.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from pathlib import Path
from typing import Final

from ...files import cache_directory, replacing
from ...status import PumiceError
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, handle_value, new
from .descriptors import COMPUTE_STAGE, DescriptorSetLayout, LayoutKey
from .reports import ReportTable

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


class PipelineContext:
    """The layouts of a device's pipelines, each made on first use and kept as long as the device.

    Attributes:
        reports: what instrumented pipelines report.
    """

    def __init__(self, device: LogicalDevice, reports: ReportTable, *, persistent_cache: bool = True) -> None:
        self.device = device
        self.reports = reports
        self.cache = PipelineCache(device, persistent=persistent_cache)
        self._lock = threading.Lock()
        self._set_layouts: dict[tuple[LayoutKey, bool, frozenset[int]], DescriptorSetLayout] = {}
        self._pipeline_layouts: dict[tuple[object, ...], CData] = {}
        self._push_templates: dict[int, CData] = {}

    def set_layout(
        self, key: LayoutKey, *, push: bool = False, partial: frozenset[int] = frozenset()
    ) -> DescriptorSetLayout:
        """The layout for these bindings, for sets or for push descriptors; ``partial`` ones may lack elements."""
        with self._lock:
            found = self._set_layouts.get((key, push, partial))
            if found is None:
                made = DescriptorSetLayout(self.device, key, push=push, partial=partial)
                found = self._set_layouts[key, push, partial] = made
            return found

    def push_template(self, layout: CData, set_layout: DescriptorSetLayout) -> CData:
        """The template that pushes a set's descriptors for a pipeline layout."""
        key = handle_value(layout)
        with self._lock:
            found = self._push_templates.get(key)
            if found is None:
                found = self._push_templates[key] = set_layout.make_template(pipeline_layout=layout)
            return found

    def pipeline_layout(self, set_layouts: tuple[DescriptorSetLayout, ...], push_bytes: int) -> CData:
        """The VkPipelineLayout for these sets and push constants."""
        key = (tuple(handle_value(layout.handle) for layout in set_layouts), push_bytes)
        with self._lock:
            found = self._pipeline_layouts.get(key)
            if found is None:
                ranges = [new("VkPushConstantRange", stageFlags=COMPUTE_STAGE, size=-(-push_bytes // 4) * 4)]
                handles = ffi.new("VkDescriptorSetLayout[]", [layout.handle for layout in set_layouts])
                info = new(
                    "VkPipelineLayoutCreateInfo",
                    setLayoutCount=len(set_layouts),
                    pSetLayouts=handles,
                    pushConstantRangeCount=1 if push_bytes else 0,
                    pPushConstantRanges=ranges if push_bytes else None,
                )
                found = self._pipeline_layouts[key] = self.device.create("pipeline layout", info)
            return found

    def drop_block(self, serial: int) -> None:
        """Forgets the sets that bind what a serial numbers (a memory block, a view, a sampler), which is destroyed."""
        for layout in list(self._set_layouts.values()):
            layout.drop_block(serial)


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
