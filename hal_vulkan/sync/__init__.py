"""Synchronisation: timeline semaphores and their callbacks.

Read: look, timeline, notifier, context, semaphore, owned_semaphores.
"""
