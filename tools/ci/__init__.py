"""``pumice ci``: tests on Vulkan in CI, and what is wrong with a machine's Vulkan.

Imports: `tools/setup`, `tools/{errors,output_files,streams,tables}`, `testing`.

Read: `command` → `workflows` (with `templates/`); `doctor` → `known_drivers`.
"""
