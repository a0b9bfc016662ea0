"""Wait sources: objects that a thread, a callback or a coroutine can wait for, and the ways to wait.

Read: notification, poll_thread, wait_mode, awaitable, source, latch, futures, wait_frame, armed_wait, deferred,
host_sources.
"""
