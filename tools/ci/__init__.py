"""``pumice ci``: tests on Vulkan in CI, and what is wrong with a machine's Vulkan.

Read: doctor, command.
"""
