"""SPIR-V as data: reading, reflection, checks, repair and specialisation of modules, and GLSL to them. No Vulkan.

Imports: `formats` and the ground files at the root. Its files are imported by name.

Read: `grammar_tables` (generated), `grammar`, `words`; `reflection_types`, `constants`,
`type_table`, `module`; `layout`, `access`, `reflect`; `capabilities` with `requirement_tables`; `repair`,
`specialize`, `grid`, `subgroups`; `tools`, `validation`; `glsl_includes`, `glsl`.
"""
