"""Executables for each target.

Read: variant, reference, vulkan.
"""
