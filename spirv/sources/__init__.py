"""Shader languages to SPIR-V, by installed compilers.

Read: constants, overrides, language, includes, bindings, shadertoy, dialects, opengl, hlsl_structures, hlsl_dialect,
slang_driver, source_compiler, commands, slang, wgsl, find, compile, glsl.
"""
