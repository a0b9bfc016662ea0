"""Passes between the front end and the targets.

Read: dynamic, formulas, canonical, decomposition, dispatch, sequencing, verification.
"""
