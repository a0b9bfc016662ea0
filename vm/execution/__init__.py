"""Contexts: modules linked together, and the stack, frames, deadlines and loops that run their functions.

Imports: `bytecode`, `machine_code`, `native`, `translation`, `types`, `wait` and the ground files at the root.

Read: `namespace`, `bytecode_module`, `interruption`, `left_frames`, `machine_tier`, `module_state`, `frame`, `linker`;
`stack`, `watchdog`, `deadlines`; `policy`, `admission`, `run`, `context`, `loop`.
"""
