"""Modules written in Python, and how their functions are called.

Imports: `bytecode`, `translation`, `wait` and the ground files at the root.

Read: `module`, `calls`.
"""
