"""The native module ``io_parameters``: parameters of files and arrays into buffers, and back.

Read: upload, module.
"""
