"""The VkInstance with its physical devices, the decisions about one of them, and the VkDevice made by these.

Read: feature_tables, features, json_reader, profile, physical_device, plan, uri, driver, logical_device, process.
"""
