"""Verification of programs at each stage.

Read: verify, stage_rules, ll_seq, stages.
"""
