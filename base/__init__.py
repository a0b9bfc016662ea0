"""The ground: small helpers that every folder may import, and that import nothing but ``status``.

Read: lazy, lazy_dataclass, closeable, switches, files, cache, install_hints, terminal, notebook, message_pipe,
child_process.
"""
