"""Invocations of functions: synchronous, in stages, with a callback on a loop, or as an object to wait for.

Read: `marshalling`, `state`, `stages`, `background`, `invocation`, `asyncio_loop`, `awaited`.
"""
