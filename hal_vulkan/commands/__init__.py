"""Command buffers that dispatch kernels and copy: recording, replaying and timing.

Read: timestamps, recording_cache, recording, context, recorder, image_recorder, action_recorder, replay,
command_buffer, performance_query.
"""
