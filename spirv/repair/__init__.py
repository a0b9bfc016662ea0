"""Changes to modules before drivers see them: workarounds for defects of drivers, and specialization.

Read: copies, double_rounding, driver_faults, exponents, formats, hints, opaque, half_rounding, loop_exits, repair,
self_test, shifted_bindings, signed_integers, special_constants, driver_repairs, specialize, zeros.
"""
