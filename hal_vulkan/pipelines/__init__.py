"""Executables, compute pipelines, and the descriptor sets that bind buffers and images to them.

Read: resources, descriptors, reports, pipeline_context, specialization, pipeline_interface, subgroups,
pipeline_statistics, pipeline, prepared_shader, executable, builtins.
"""
