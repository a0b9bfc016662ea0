"""Objects that the pipelines of one device share: descriptor set layouts, pipeline layouts and the pipeline cache.

The VkPipelineCache is an entry of the cache on disk, one for each device and driver version. Drivers trust its machine
code, and have crashed on corrupt data, so they only get complete data that pumice wrote for this user.

Thread rule: any thread; it locks.
"""

from __future__ import annotations

import logging
import threading

from ...base.cache import CachedFile, digest
from ...status import PumiceError
from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, handle_value, new
from .descriptors import COMPUTE_STAGE, DescriptorSetLayout, LayoutKey
from .reports import ReportTable

_log = logging.getLogger("pumice.pipeline_cache")


class PipelineCache:
    """The VkPipelineCache of one device. Vulkan synchronises it, so any thread may use it."""

    def __init__(self, device: LogicalDevice, *, persistent: bool = True) -> None:
        self._device = device
        profile = device.profile
        key = (profile.device_uuid, profile.driver_uuid, profile.driver_version)
        self.file: CachedFile | None = CachedFile("pipelines", key) if persistent else None
        data = (self.file.load() if self.file is not None else None) or b""
        self.handle: CData = self._create(data)
        self._initial = digest(self._data())

    def _create(self, data: bytes) -> CData:
        info = new("VkPipelineCacheCreateInfo", initialDataSize=len(data), pInitialData=data or None)
        try:
            return self._device.create("pipeline cache", info)
        except PumiceError:
            if not data:
                raise
            _log.warning("the driver refused the pipeline cache that it gave; it is rebuilt")
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
        """Writes the cache for later processes if pipelines were added since it was read; returns whether it did."""
        if self.file is None or self._device.lost is not None:
            return False
        data = self._data()
        content = digest(data)
        if not data or content == self._initial or not self.file.store(data):
            return False
        self._initial = content
        return True


class PipelineContext:
    """The layouts of a device's pipelines, each made on first use and kept as long as the device.

    Attributes:
        reports: the reports of instrumented pipelines.
    """

    def __init__(self, device: LogicalDevice, reports: ReportTable, *, persistent_cache: bool = True) -> None:
        self.device = device
        self.reports = reports
        self.cache: PipelineCache = PipelineCache(device, persistent=persistent_cache)
        self._lock = threading.Lock()
        self._set_layouts: dict[tuple[LayoutKey, bool, frozenset[int]], DescriptorSetLayout] = {}
        self._pipeline_layouts: dict[tuple[object, ...], CData] = {}
        self._push_templates: dict[int, CData] = {}

    def set_layout(
        self, key: LayoutKey, *, push: bool = False, partial: frozenset[int] = frozenset()
    ) -> DescriptorSetLayout:
        """Returns the layout for these bindings, for sets or for push descriptors.

        ``partial`` bindings may lack elements.
        """
        with self._lock:
            layout = self._set_layouts.get((key, push, partial))
            if layout is None:
                made = DescriptorSetLayout(self.device, key, push=push, partial=partial)
                layout = self._set_layouts[key, push, partial] = made
            return layout

    def push_template(self, layout: CData, set_layout: DescriptorSetLayout) -> CData:
        """Returns the template that pushes a set's descriptors for a pipeline layout."""
        key = handle_value(layout)
        with self._lock:
            template = self._push_templates.get(key)
            if template is None:
                template = self._push_templates[key] = set_layout.make_template(pipeline_layout=layout)
            return template

    def pipeline_layout(self, set_layouts: tuple[DescriptorSetLayout, ...], push_bytes: int) -> CData:
        """Returns the VkPipelineLayout for these sets and push constants."""
        key = (tuple(handle_value(layout.handle) for layout in set_layouts), push_bytes)
        with self._lock:
            pipeline_layout = self._pipeline_layouts.get(key)
            if pipeline_layout is None:
                ranges = [new("VkPushConstantRange", stageFlags=COMPUTE_STAGE, size=-(-push_bytes // 4) * 4)]
                handles = ffi.new("VkDescriptorSetLayout[]", [layout.handle for layout in set_layouts])
                info = new(
                    "VkPipelineLayoutCreateInfo",
                    setLayoutCount=len(set_layouts),
                    pSetLayouts=handles,
                    pushConstantRangeCount=1 if push_bytes else 0,
                    pPushConstantRanges=ranges if push_bytes else None,
                )
                pipeline_layout = self._pipeline_layouts[key] = self.device.create("pipeline layout", info)
            return pipeline_layout

    def drop_block(self, serial: int) -> None:
        """Drops the cached sets that use a destroyed object (a memory block, a view, a sampler), by its serial."""
        for layout in list(self._set_layouts.values()):
            layout.drop_block(serial)
