"""Checks a machine's parts for pumice and installs missing ones (``python -m pumice.tools.setup.vulkan``), builds a
wheel of its software driver for other machines (``pumice vendor-driver``), and installs the completion of commands in
shells (``pumice --install-completion``).

Read: dpkg, relocation, vendor_driver, vulkan.
"""
