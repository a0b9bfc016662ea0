"""The assembly text of modules: parser, assembler, disassembler, and the reference page of the instruction set.

Read: `syntax`, `literals`, `lexer`, `cursor`, `instruction_parser`, `parser`, `assembler`; `disassembler`,
`isa_reference`.
"""
