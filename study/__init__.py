"""Dispatch timing studies: what a dispatch costs, where the time goes, how it scales.

Needs the ``study`` extra: ``pip install 'pumice[study]'``. The design is in docs/design/study.md.
"""
