"""``pumice devices``, ``info``, ``dump`` and ``cache``: what there is to run on, what files hold, and what is kept.

Read: `devices`; `info`, `kernel_tables`; `dump`, `module_summary`, `module_tables`; `cache`.
"""
