"""``pumice compile``: from a tensor program to a module.

Imports: the files of `tools`, no other room of it.

Read: `command`.
"""
