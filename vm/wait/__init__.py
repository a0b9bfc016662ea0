"""Waits: what an invocation can wait for, and how a thread or a loop waits for it.

Imports: the ground files at the root.

Read: `source`, `frame`, `latch`, `sources`, `futures`, `waits`, `deferred`, `reactor`.
"""
