"""The command that writes code which runs without the virtual machine.

Read: `command`.
"""
