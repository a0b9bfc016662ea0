"""Contexts: modules linked together, and the stack, frames, deadlines and loops that run their functions.

Imports: `bytecode`, `native`, `translation`, `types`, `wait` and the ground files at the root.

Read: `frame`, `namespace`, `translation`, `bytecode_module`, `hooks`, `module_state`, `linker`; `stack`, `watchdog`,
`deadlines`; `policy`, `admission`, `gate`, `context`, `loop`.
"""
