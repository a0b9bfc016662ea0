"""Facts about operations that passes and strategies share: costs, rows, scans, identity elements.

Read: identities, reference_program, weights, rows, scans, special_forms.
"""
