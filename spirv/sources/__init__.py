"""Shader languages to SPIR-V, by installed compilers.

Read: constants, language, includes, dialects, opengl, bindings, hlsl_dialect, slang_driver, source_compiler, commands,
slang, wgsl, find, compile, glsl.
"""
