"""What executables hold for each target.

Imports: compiler.ir, compiler.codegen, formats, hal_reference.program.
Read: reference, vulkan.
"""
