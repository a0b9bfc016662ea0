"""``pumice run``, ``pumice run-checks`` and ``pumice demo``: kernels and programs with arguments from the command line.

Imports: the files of `tools`, no other room of it.

Read: `command`; for kernels `arguments`, `kernel_arguments`, `kernel`; for programs `module_arguments`,
`module_results`, `module`; `expectations`; `checks`; `demo`.
"""
