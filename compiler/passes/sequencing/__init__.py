"""The low-level sequencer: when dispatches run, and where their buffers lie.

Read: memory, steps, barriers, liveness, ll_seq, predicate, schedule.
"""
