"""``pumice study``: runs, shows, compares and exports timing studies.

Read: clocks, history, judgement, baselines, ci_outputs, observing, progress, resuming, tables, gate, against,
measuring, processes, showing, command.
"""
