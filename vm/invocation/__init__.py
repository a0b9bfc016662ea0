"""Invocations of functions: synchronous, in stages, on a loop with a callback, and as an object to wait for.

Imports: `bytecode`, `execution`, `translation`, `types`, `wait` and the ground files at the root.

Read: `marshalling`, `state`, `stages`, `background`, `invocation`, `asyncio_loop`, `awaited`.
"""
