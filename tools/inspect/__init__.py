"""``pumice devices``, ``pumice info`` and ``pumice dump``: what there is to run on, and what files hold.

Imports: the files of `tools`, no other room of it.

Read: `devices`; `info`, `kernel_tables`; `dump`, `module_summary`, `module_tables`.
"""
