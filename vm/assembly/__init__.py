"""The assembly text of modules: parser, assembler, disassembler, and the reference page of the instruction set.

Read: lexer, literals, cursor, syntax, disassembler, instruction_parser, isa_reference, parser, assembler.
"""
