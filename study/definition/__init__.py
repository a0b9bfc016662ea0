"""Studies: targets, axes, sampling settings and derived figures, their checks, and their expansion to points.

Read: inputs, kept_file, messages, point, axis, expression, sample, setting_types, settings, target_settings,
figures, study, expansion, study_file.
"""
