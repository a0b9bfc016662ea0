"""``pumice bench``: times one kernel or function as a study of one point.

Imports: the files of `tools`, and its rooms `run` (arguments of kernels) and `study` (measuring and printing).

Read: `command`, `study`, `kernel`.
"""
