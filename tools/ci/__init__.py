"""``pumice ci``: tests on Vulkan in CI, and what is wrong with a machine's Vulkan.

Read: `command` → `workflows` (with `templates/`); `doctor` → `known_drivers`.
"""
