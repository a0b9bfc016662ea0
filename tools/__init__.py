"""The command line: parses arguments, calls the other folders, prints what they return. It has no logic of its own.

Imports: everything below it.

Read: `cli`; `errors`, `streams`, `options`, `tables`, `input_files`, `output_files`, `reports`; then the room of a
command.
"""
