"""Reports of studies: an HTML file with charts, or tables for a terminal.

Read: charts, overview, template, history_page, page, terminal, trace.
"""
