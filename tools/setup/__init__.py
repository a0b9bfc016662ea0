"""Checks what a machine has for pumice and installs what is missing (``python -m pumice.tools.setup.vulkan``), and
builds a wheel of its software driver for other machines (``pumice vendor-driver``).

Imports: `tables` of `tools`.

Read: `vulkan`; `dpkg` → `relocation` → `vendor_driver`.
"""
