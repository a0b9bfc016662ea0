"""``pumice run``, ``pumice run-checks`` and ``pumice demo``: kernels and programs with arguments from the command line.

Read: demo, driver_start, keys, expectations, block_arguments, image_arguments, arguments, kernel_arguments, capture,
kernel, module_arguments, checks, module_results, module, script, command.
"""
