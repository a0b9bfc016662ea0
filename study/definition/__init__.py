"""Studies: targets, axes, sampling settings and derived figures, their checks, and their expansion to points.

Read: study, axis, expression, target_settings, setting_types, settings, process, figures, sample, point, expansion,
inputs, kept_file, messages, study_file.
"""
