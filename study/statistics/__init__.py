"""Statistics of samples: summaries with intervals, fitted lines, and comparisons of two runs.

Imports: ``status`` only.

Read: summary, bootstrap, samples, comparison, paired, runs, fit, change_points.
"""
