"""Wait sources: what a thread, a callback or a coroutine can wait for, and the ways to wait.

Imports: base, status.
Read: notification, source, wait_mode, latch, wait_frame, futures, awaitable, waits, sources, deferred, reactor.
"""
