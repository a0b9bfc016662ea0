"""The command line: parses arguments, calls the other folders, prints what they return. It has no logic of its own.

Read: `cli`; `errors`, `streams`, `options`, `tables`, `input_files`, `output_files`, `reports`, `programs`,
`device_targets`, `completion`; then the room of a command.
"""
