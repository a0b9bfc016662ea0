"""Charts and tables of a report.

Read: units, palette, chart, series, point_rows, distributions, stacks, sequence, flame, heat_map, scaling, roofline,
comparisons.
"""
