"""State of compiled programs: buffers whose memory is reused, recordings that are replayed, shared executables.

Read: allocator, executable, timed_recordings, dispatch_list, command_buffer, timed_queue, queries.
"""
