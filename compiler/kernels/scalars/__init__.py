"""Scalar arithmetic of generated kernels, and the facts about a device that determine its form.

Read: lengths, narrow_floats, target, device_target, wide_integers, scalars, floats, exponentials, integers,
conversions, trigonometry, complex_math.
"""
