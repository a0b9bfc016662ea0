"""Executables, compute pipelines, and the descriptor sets that bind buffers and images to them.

Read: pipeline_statistics, prints, reports, resources, descriptors, pipeline_context, pipeline_interface, self_test,
specialization, prepared_shader, subgroups, pipeline, executable, builtins.
"""
