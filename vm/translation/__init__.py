"""Translation of verified functions to Python source.

Imports: `bytecode` and the ground files at the root.

Read: `translator`; `basic_block`, `register_types`, `module_analysis`, `analysis`, `ranges`; `operations`, `numerics`,
`float_numerics`; `source`, `values`, `operation_writer`, `call_writer`, `parallel_copy`, `flow`, `control_flow`,
`tree`, `blocks`, `structure`.
"""
