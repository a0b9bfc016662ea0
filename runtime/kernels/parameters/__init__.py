"""Parameters of kernels: what a binding takes, checks and names.

Imports: runtime.arrays, runtime.images, hal_vulkan, spirv, formats, base, status.
Read: block, parameter, image_parameter, runtime_array, parameters, arguments, push, names, block_dtypes, pointers.
"""
