"""The reference device: tensor programs in NumPy, without Vulkan.

Imports: the ground, formats.
Read: program, operations, linear_algebra, random_bits.
"""
