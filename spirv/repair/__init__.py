"""Changes to modules before drivers see them: workarounds for defects of drivers, and specialization.

Read: hints, specialize, repair, exponents, double_rounding.
"""
