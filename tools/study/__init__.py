"""``pumice study``: runs, shows, compares and exports timing studies.

Read: command, showing, measuring, against, baselines, gate, judgement, ci_outputs, tables, progress, history, clocks,
observing, processes, resuming.
"""
