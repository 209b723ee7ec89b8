"""The order of the suites: the longest files first, so that the processes that share the files end together.

A process takes a whole file at a time (``--dist loadfile``). A file of the first suites takes up to some minutes, one
of the last some seconds: what is left over at the end is short. Hook for ``tests/conftest.py``.
"""

from __future__ import annotations

import pytest
from partners import leave_out
from suite_minutes import folder_of

LONGEST_FIRST = (
    "cluster",
    "peer",
    "clients",
    "journeys",
    "pipeline",
    "golden_agree",
    "faults",
    "crash",
    "fuzz",
    "project",
    "viewer",
)
"""Folders under ``tests``; what is not named comes last."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Hook: leaves out what cannot run here, then sorts by suite; within one, files and tests stay as they are."""
    leave_out(config, items)
    rank = {folder: number for number, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(folder_of(item.nodeid), len(rank)))
