"""Statistics of samples: summaries with intervals, fitted lines, and comparisons of two runs.

Read: samples, bootstrap, change_points, comparison, fit, paired, runs, summary.
"""
