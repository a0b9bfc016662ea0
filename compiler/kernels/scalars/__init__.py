"""Scalar arithmetic of generated kernels, and the facts of a device that decide its form.

Read: lengths, narrow_floats, target, device_target, wide_integers, scalars, floats, exponentials, integers,
conversions, trigonometry, complex_math.
"""
