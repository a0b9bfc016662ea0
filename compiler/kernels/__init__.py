"""From a region of tensor operations to a SPIR-V kernel, whatever the strategy.

Imports: compiler.ir, spirv, formats.
Read: target; wide_integers, narrow_floats, scalars, integers, conversions, floats, exponentials, trigonometry,
remainders, complex_math, elementwise; index, elements, movement, contractions, reductions, scatters; kernel, region.
"""
