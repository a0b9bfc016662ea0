"""Tensor programs become modules: front ends, the stages between, and SPIR-V.

Imports: spirv, formats, vm.bytecode, vm.assembly.
Read: ir, dialects, codegen.
"""
