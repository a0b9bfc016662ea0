"""``pumice run``, ``pumice run-checks`` and ``pumice demo``: kernels and programs with arguments from the command line.

Read: `command`, `driver_start`; for kernels `keys`, `arguments`, `image_arguments`, `block_arguments`,
`kernel_arguments`, `kernel`, `capture`; for programs `module_arguments`, `module_results`, `module`; `expectations`;
`script`; `checks`; `demo`.
"""
