"""Native modules: the functions that compiled programs import, bound to the HAL and to files.

Read: hal, parameters, check.
"""
