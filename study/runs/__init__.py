"""Runs of a study: passes over its points in this process and in child processes.

Read: child_pass, side_host, side_process, taken_files, runner, capture, child_run, child, observing.
"""
