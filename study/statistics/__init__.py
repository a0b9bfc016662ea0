"""Statistics of samples: summaries with intervals, outliers, fitted lines, and comparisons of two runs.

Imports: ``status`` only.

Read: summary, bootstrap, outliers, samples, comparison, fit.
"""
