"""Verification of programs at each stage.

Read: verify, stage_rules, executables, ll_seq, stages.
"""
