"""What executables hold for each target.

Imports: compiler.ir, compiler.dialects, compiler.codegen, formats, spirv, hal_reference.
Read: variant, reference, vulkan.
"""
