"""Shader languages to SPIR-V, by installed compilers.

Imports: `formats`, `spirv` and the ground files at the root.

Read: `includes`, `glsl`.
"""
