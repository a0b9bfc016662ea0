"""The native module ``hal``: how compiled programs use devices.

Read: fence_exports, reference, buffer_exports, command_exports, device_exports, queue_exports, module.
"""
