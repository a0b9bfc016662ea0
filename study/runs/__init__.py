"""Runs of a study: passes over its points in this process and in child processes.

Read: child_calls, taken_files, runner, capture, child, observing.
"""
