"""``pumice study``: runs, lists, shows, compares and exports studies.

Imports: the files of `tools`, no other room of it.

Read: `command`, `progress`, `tables`, `extra`.
"""
