"""Modules written in Python, and calls of their functions.

Read: `module`, `calls`.
"""
