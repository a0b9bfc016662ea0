"""Shader languages to SPIR-V, by installed compilers.

Read: constants, language, includes, bindings, slang_driver, source_compiler, commands, slang, wgsl, find, compile,
glsl.
"""
