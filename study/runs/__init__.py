"""Runs of a study: passes over its points in this process and in child processes.

Read: runner, taken_files, child_pass, child, child_run, side_process, side_host, observing, capture.
"""
