"""``pumice bench``: times one kernel or function as a study of one target.

Read: command, study, side, other_side, revision.
"""
