"""Changes to modules before drivers see them: repairs of what drivers get wrong, and specialization.

Read: hints, narrow_types, specialize, repair, exponents, double_rounding.
"""
