"""Synchronisation: timeline semaphores, and the callbacks that they make.

Read: look, timeline, notifier, context, semaphore, owned_semaphores.
"""
