"""Parameters of kernels: the arguments that a binding takes, checks and names.

Read: block, parameter, arguments, image_parameter, push, names, pointers, parameters.
"""
