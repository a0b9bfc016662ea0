"""The low-level sequencer: when dispatches run, and where their buffers lie.

Read: memory, steps, liveness, ll_seq, predicate, reuse, barriers, schedule.
"""
