"""The VkInstance with its physical devices, the decisions about one of them, and the VkDevice made by these.

Read: feature_tables, features, json_reader, profile, physical_device, plan, uri, driver, logical_device, process.
"""

from __future__ import annotations

from .driver import Driver, shared_driver
from .plan import DevicePlan, PlanOptions
from .profile import DeviceLimits, DeviceProfile, DeviceType

__all__ = ["DeviceLimits", "DevicePlan", "DeviceProfile", "DeviceType", "Driver", "PlanOptions", "shared_driver"]
