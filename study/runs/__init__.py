"""Runs of a study: passes over its points in this process and in child processes.

Imports: study.definition, study.machine, study.results, study.sampling, study.workloads, base, status.
Read: side_host, side_process, child_pass, taken_files, runner, child_run, child, observing, capture.
"""
