"""Capsules: one file with everything of a store but the bodies of its messages, for attaching to a problem report.

:mod:`container` is the file's format, :mod:`capsule_disk` lets every reader of a store read it. It is made by
:mod:`engine.inspection.capsule_making` (docs/formats/capsule.md).
"""
