"""The ground: small helpers that every folder may import, and that import nothing but ``status``.

Read: calling_code, closeable, deprecation, files, install_hints, lazy_dataclass, locks, lazy, memory_budget,
message_pipe, child_process, notebook, rundown, switches, cache, syntax_tree, terminal, weak_registry.
"""
