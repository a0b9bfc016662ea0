"""A module as a program that is easy to write in other languages: functions of typed variables, named imports.

Read: `ir`, `storages`, `webs`; `counters`, `folding`, `branches`, `simplify`;
`reference_types`, `naming`, `reader`.
"""
