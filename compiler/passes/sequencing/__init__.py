"""The low-level sequencer: the order of dispatches, and the memory of their buffers.

Read: memory, steps, barriers, liveness, ll_seq, predicate, schedule.
"""
