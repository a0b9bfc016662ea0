"""Native modules: the functions that compiled programs import, bound to the HAL and to files. A room for each module.

Read: hal, parameters, check.
"""
