"""SPIR-V as data: reading, reflection, checks, repair, specialisation and writing of modules. No Vulkan.

Read: binary, reflection, instrument, repair, checks, sources.
"""
