"""Wait sources: what a thread, a callback or a coroutine can wait for, and the ways to wait.

Read: notification, source, wait_mode, latch, wait_frame, futures, awaitable, armed_wait, host_sources, deferred,
poll_thread.
"""
