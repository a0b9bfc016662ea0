"""Checks what a machine has for pumice and installs what is missing (``python -m pumice.tools.setup.vulkan``),
builds a wheel of its software driver for other machines (``pumice vendor-driver``), and has shells complete commands
(``pumice --install-completion``).

Read: dpkg, relocation, vendor_driver, vulkan.
"""
