"""When dispatches run and where their buffers lie: the low-level sequencer.

Imports: ir, dialects, passes.dispatch.
Read: memory, steps, liveness, coalesce, predicate, reuse, barriers, schedule, ll_seq.
"""
