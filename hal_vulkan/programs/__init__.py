"""What compiled programs hold: buffers whose memory is used again, recordings that are replayed, shared executables.

Read: allocator, executable, timed_recordings, dispatch_list, command_buffer, timed_queue, queries.
"""
