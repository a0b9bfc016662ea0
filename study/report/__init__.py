"""Reports of studies: an HTML file with charts, or tables for a terminal.

Imports: ``study.definition``, ``study.statistics``, ``study.workloads``, ``study.results`` and ``runtime.profiling``.

Read: template, page, terminal, overview, chart, palette, units, series, scaling, heat_map, stacks, flame,
distributions, sequence, repeats, roofline, comparisons, sides, point_rows, history_page, trace.
"""
