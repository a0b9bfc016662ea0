"""Passes that make compute shaders report what goes wrong in them, through one more storage buffer.

Read: editor, blocks, lines, paths, printed, reports, rewrite, reporter, checks, addresses, conditions, images, prints,
trip_counts, loop_guard, wide_grid, workgroup, accesses, passes.
"""
