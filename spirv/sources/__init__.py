"""Shader languages to SPIR-V, by installed compilers.

Read: constants, diagnostics, language, includes, options, registers, slang_driver, source_compiler, assembly, dxc,
glslang, slang, wgsl, find, compile, glsl.
"""
