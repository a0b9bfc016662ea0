"""What happens to a program between the front end and the targets.

Imports: ir, dialects, targets (the reference device's definitions fold constants).
Read: rewrite, identities, direct_scatters, digit_passes, weights, short_transforms, rows, scans, which rooms share;
formulas, dynamic, canonical, decomposition, dispatch, sequencing, in the order in which programs pass them;
verification.
"""
