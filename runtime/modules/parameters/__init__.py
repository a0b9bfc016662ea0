"""The native module ``io_parameters``: parameters of files and arrays into buffers, and back.

Imports: ``hal``, the VM's native modules and types, ``runtime/parameters``, ``runtime/modules/hal``.

Read: upload, module.
"""
