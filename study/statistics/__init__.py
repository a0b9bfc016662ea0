"""Statistics of samples: summaries with intervals, fitted lines, and comparisons of two runs.

Read: samples, summary, bootstrap, comparison, paired, runs, fit, change_points.
"""
