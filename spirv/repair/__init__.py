"""Changes to modules before drivers see them: repairs of what drivers get wrong, and specialization.

Read: hints, specialize, repair, exponents, double_rounding.
"""
