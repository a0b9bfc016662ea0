"""Submission: queues, work held back on the host, and what is kept until the device is done with it.

Read: batch, retirement, held_submission, submission, queue, prepared_submission, calibration.
"""
