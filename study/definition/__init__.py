"""Studies: targets, axes, sampling settings and derived figures, their checks, and their expansion to points.

Imports: ``formats``, ``runtime.values`` and ``status``.

Read: study, axis, expression, target_settings, setting_types, settings, figures, point, expansion,
study_file, kept_file.
"""
