"""What the pipelines of one device share: descriptor set layouts, pipeline layouts and the pipeline cache.

Thread rule: it locks.
"""

from __future__ import annotations

import threading
from typing import Final

from ..instance.logical_device import LogicalDevice
from ..vulkan.functions import CData, ffi, handle_value, new
from .descriptors import DescriptorSetLayout, LayoutKey
from .pipeline_cache import PipelineCache

_COMPUTE_STAGE: Final = 0x20


class PipelineContext:
    """The layouts of a device's pipelines, each made on first use and kept as long as the device."""

    def __init__(self, device: LogicalDevice, *, persistent_cache: bool = True) -> None:
        self.device = device
        self.cache = PipelineCache(device, persistent=persistent_cache)
        self._lock = threading.Lock()
        self._set_layouts: dict[tuple[LayoutKey, bool], DescriptorSetLayout] = {}
        self._pipeline_layouts: dict[tuple[object, ...], CData] = {}
        self._push_templates: dict[int, CData] = {}

    def set_layout(self, key: LayoutKey, *, push: bool = False) -> DescriptorSetLayout:
        """The layout for these bindings, for sets or for push descriptors."""
        with self._lock:
            found = self._set_layouts.get((key, push))
            if found is None:
                found = self._set_layouts[key, push] = DescriptorSetLayout(self.device, key, push=push)
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
                ranges = [new("VkPushConstantRange", stageFlags=_COMPUTE_STAGE, size=-(-push_bytes // 4) * 4)]
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
        """Forgets the sets that bind ranges of a memory block which is being freed."""
        for layout in list(self._set_layouts.values()):
            layout.drop_block(serial)
