"""The low-level sequencer: when dispatches run, and where their buffers lie.

Read: memory, steps, liveness, coalesce, predicate, reuse, barriers, schedule, ll_seq.
"""
