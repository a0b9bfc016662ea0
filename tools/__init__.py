"""The command line: parses arguments, calls the other folders, prints their results. It has no logic of its own.

Read: completion, errors, input_files, device_targets, options, programs, streams, cli, output_files, codegen, reports,
run, tables, check, compile, inspect, setup, ci, study, bench, view.
"""
