"""The ground: small helpers that every folder may import, and that import nothing but ``status``.

Read: closeable, deprecation, files, install_hints, lazy, lazy_dataclass, memory_budget, message_pipe, child_process,
notebook, rundown, switches, weak_registry, cache, syntax_tree, terminal.
"""
