"""Parameters of kernels: the arguments that a binding takes, checks and names.

Read: block, number_block, parameter, arguments, image_parameter, parameters, push, unused, uniforms, names, pointers.
"""
