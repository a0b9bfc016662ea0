"""Invocations of functions: synchronous, in stages, on a loop with a callback, and as an object to wait for.

Read: `marshalling`, `state`, `stages`, `background`, `invocation`, `asyncio_loop`, `awaited`.
"""
