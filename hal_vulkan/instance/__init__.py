"""The VkInstance with its physical devices, the plan for a device, and the VkDevice made by it.

Read: feature_tables, features, json_reader, profile, physical_device, plan, uri, driver, logical_device, process.
"""
