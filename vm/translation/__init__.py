"""Translation of verified functions to Python source.

Read: `translator`; `basic_block`, `register_types`, `module_analysis`, `analysis`, `ranges`; `expressions`,
`operations`; `entries`, `source`, `values`, `operation_writer`, `call_writer`, `parallel_copy`, `flow`, `control_flow`,
`tree`, `blocks`, `structure`.
"""
