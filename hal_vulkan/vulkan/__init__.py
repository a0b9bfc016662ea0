"""The Vulkan library: its functions and structures, its results as errors, and counts of live native objects.

Read: vendored, functions, results, validation, live_objects.
"""
