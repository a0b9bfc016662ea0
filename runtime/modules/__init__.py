"""Native modules: the functions that compiled modules import, bound to the HAL and to files."""
