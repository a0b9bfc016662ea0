"""Scalar arithmetic of generated kernels, and the facts of a device that decide its form.

Read: target, device_target, lengths, narrow_floats, wide_integers, scalars, floats, integers, exponentials,
trigonometry, conversions, remainders, complex_math.
"""
