"""``pumice devices``, ``info``, ``dump`` and ``cache``: devices, the contents of files, and the cache.

Read: cache, devices, kernel_tables, module_summary, module_tables, dump, info.
"""
