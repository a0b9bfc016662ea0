"""What compiled programs hold: buffers whose memory is used again, recordings that are replayed, shared executables.

Imports: `vulkan`, `instance`, `memory`, `sync`, `commands`, `submit`, `hal`, `formats`, `spirv` and the ground files.

Read: `allocator`, `executable`, `timed_recordings`, `dispatch_list`, `command_buffer`, `timed_queue`, `queries`.
"""
