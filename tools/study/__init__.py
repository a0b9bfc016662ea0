"""``pumice study``: runs, shows, compares and exports timing studies.

Imports: ``study``, ``tools.run``, ``runtime``, ``hal_vulkan`` and the shared files of ``tools``.

Read: command, measuring, tables, progress.
"""
