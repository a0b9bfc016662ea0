"""``pumice view``.

Imports: `errors`, `options`, `programs`, `run` and `streams` of the tools, and `viewer`.
"""
