"""The Vulkan library: its functions and structures, its results as errors, and counts of the native objects alive.

Read: vendored, functions, results, validation, live_objects.
"""
