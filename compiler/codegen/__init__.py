"""From a region of tensor operations to a SPIR-V kernel.

Imports: compiler.ir, spirv, formats.
Read: target, wide_integers, scalars, narrow_floats, integers, conversions, double_words, math, trigonometry,
complex_math, elementwise, index, elements, movement, contractions, reductions, scatters, kernel.
"""
