"""``pumice ci``: tests on Vulkan in CI, and diagnosis of a machine's Vulkan.

Read: doctor, command.
"""
