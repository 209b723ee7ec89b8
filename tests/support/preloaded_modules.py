"""Modules that the processes of a window need, loaded once: :mod:`forked_processes` forks from the process that did."""

from __future__ import annotations

import importlib

from engine.codec import columns

for name in (
    "engine.inspection.findings",
    "engine.lab.server",
    "engine.query",
    "viewer.log.count_work",
    "viewer.log.export_work",
    "viewer.log.filter_work",
    "viewer.log.find_work",
    "viewer.queues.verdict_work",
    "viewer.runtime.store_work",
    "viewer.runtime.worker",
    "viewer.space.work",
    "viewer.where.work",
):
    importlib.import_module(name)
columns.twin()
