"""``pumice devices``, ``info``, ``dump`` and ``cache``: what there is to run on, what files hold, and what is kept.

Read: cache, devices, kernel_tables, module_summary, module_tables, dump, info.
"""
