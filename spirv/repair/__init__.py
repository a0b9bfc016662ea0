"""Changes to modules before drivers see them: workarounds for defects of drivers, and specialization.

Read: copies, double_rounding, driver_faults, exponents, formats, hints, opaque, loop_exits, narrow_rounding, repair,
self_test, shifted_bindings, signed_integers, special_constants, driver_repairs, specialize, zeros.
"""
