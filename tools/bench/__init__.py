"""``pumice bench``: times one kernel or function as a study of one target.

Read: revision, study, side, command.
"""
