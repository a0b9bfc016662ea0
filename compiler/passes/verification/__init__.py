"""Verification of programs at each stage.

Read: verify, ll_seq, stages.
"""
