"""``pumice check``: a device tried from features to speed, with a verdict for each area and a report to attach.

Read: case, programs, catalogue, child, trial, progress, report, page, command.
"""
