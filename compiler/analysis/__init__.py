"""Facts about operations that passes and strategies share: costs, rows, scans, identity elements.

Read: weights, identities, rows, scans, direct_scatters, short_transforms, digit_passes, reference_program.
"""
