"""Contexts: modules linked together, and the stack, frames, deadlines and loops that run their functions.

Read: `namespace`, `bytecode_module`, `interruption`, `left_frames`, `machine_tier`, `module_state`, `frame`, `linker`;
`stack`, `watchdog`, `deadlines`; `policy`, `admission`, `run`, `context`, `loop`.
"""
