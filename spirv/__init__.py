"""SPIR-V as data: reading, reflection, checks, repair, specialisation and writing of modules, and GLSL to them.

Imports: `formats` and the ground files at the root. Its files are imported by name. No Vulkan.

Read: `grammar_tables` (generated), `grammar`, `words`; `reflection_types`, `constants`, `type_table`, `module`;
`layout`, `access`, `reflect`; `block_dtype`, `block_text`, `block_names`; `requirements` and `capabilities` with
`requirement_tables`; `repair`, `hints`, `narrow_types`, `specialize`, `grid`, `subgroups`; `tools`, `vocabulary`,
`validation`; `declarations`, `expression`, `folding`, `offsets`, `builder`, `shared_memory`, `matrices`,
`integer_dots`; `instrument/`, `exponents` and `double_rounding` by its editor; `sources/`.
"""
