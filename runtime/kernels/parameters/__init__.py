"""Parameters of kernels: the arguments that a binding takes, checks and names.

Read: block, block_dtypes, parameter, image_parameter, runtime_array, parameters, arguments, names, push, pointers.
"""
