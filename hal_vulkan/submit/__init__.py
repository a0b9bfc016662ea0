"""Submission: queues, work held back on the host, and objects kept until the device is done with them.

Read: batch, retirement, held_submission, submission, queue, prepared_submission, calibration.
"""
