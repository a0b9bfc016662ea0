"""``pumice study``: runs, shows, compares and exports timing studies.

Read: history, judgement, baselines, ci_outputs, progress, tables, gate, against, measuring, measuring_options, showing,
command.
"""
