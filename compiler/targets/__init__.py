"""What executables hold for each target.

Imports: compiler.ir, hal_reference.program.
Read: reference.
"""
