"""Shader languages to SPIR-V, by installed compilers.

Read: constants, hlsl_dialect, overrides, language, includes, bindings, dialects, opengl, slang_driver, source_compiler,
commands, slang, wgsl, find, compile, glsl.
"""
