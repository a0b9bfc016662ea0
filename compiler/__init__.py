"""Tensor programs become modules: front ends, the stages between, and SPIR-V.

Imports: spirv, formats, hal_reference (the definitions of operations), vm.bytecode, vm.assembly.
Read: ir, dialects, passes, codegen, targets, conversion, graphdef, function_abi, type_converter, calling_convention,
entry_points, module, stages, lowering, origin, pipeline, module_cache, compile.
"""
