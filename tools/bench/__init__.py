"""``pumice bench``: times one kernel or function as a study of one target.

Imports: ``study``, ``tools.run``, ``runtime``, ``hal_vulkan`` and the shared files of ``tools``.

Read: command, study.
"""
