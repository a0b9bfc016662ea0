"""Passes that make compute shaders report what goes wrong in them, through one more storage buffer.

Read: editor, blocks, lines, paths, reports, rewrite, reporter, conditions, checks, addresses, images, trip_counts,
loop_guard, workgroup, accesses, passes.
"""
