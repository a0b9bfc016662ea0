"""Changes to modules before drivers see them: repairs of what drivers get wrong, and specialization.

Imports: spirv.binary, spirv.reflection, spirv.instrument, base, status.
Read: hints, narrow_types, specialize, repair, exponents, double_rounding.
"""
