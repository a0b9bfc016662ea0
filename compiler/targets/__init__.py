"""Executables for each target.

Read: reference, vulkan.
"""
