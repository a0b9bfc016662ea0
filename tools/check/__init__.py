"""``pumice check``: tries a device from features to speed, with a verdict for each area and a report to attach.

Read: case, calls, child, facts, kernels, subgroups, images, memory, programs, progress, speed, timing, catalogue,
trial, report, page, command.
"""
