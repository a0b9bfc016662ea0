"""Shader languages to SPIR-V, by installed compilers.

Read: `language`, `options`; `includes`, `registers`, `diagnostics`; `source_compiler`, then one file a compiler:
`glslang`, `slang` (with `slang_driver`, a program of its own), `dxc`, `wgsl`, `assembly`; `find`, `compile`, `glsl`;
`constants`.
"""
