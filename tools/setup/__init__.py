"""Checks what a machine has for pumice, and installs what is missing: ``python -m pumice.tools.setup.vulkan``.

Imports: no other file of `tools`.

Read: `vulkan`.
"""
