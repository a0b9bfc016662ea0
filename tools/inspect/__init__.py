"""``pumice devices``, ``info``, ``dump`` and ``cache``: what there is to run on, what files hold, and what is kept.

Imports: the files of `tools`, no other room of it.

Read: `devices`; `info`, `kernel_tables`; `dump`, `module_summary`, `module_tables`; `cache`.
"""
