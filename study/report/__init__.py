"""Reports of studies: an HTML file with charts, or tables for a terminal.

Read: template, page, charts, overview, observations, terminal, history_page, trace.
"""
