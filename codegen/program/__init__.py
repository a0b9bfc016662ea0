"""A module as a program that is easy to write in another language: functions of typed variables, named imports.

Read: `ir`, `storages`, `webs`; `counters`, `folding`, `branches`, `simplify`;
`reference_types`, `naming`, `reader`.
"""
