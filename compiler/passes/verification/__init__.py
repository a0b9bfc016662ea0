"""Holds programs against what the passes and targets after each stage take for granted.

Imports: ir, dialects, passes.dispatch, passes.dynamic, passes.sequencing, targets.
Read: verify, stage_rules, executables, ll_seq, stages.
"""
