"""The order of the files: the longest suites first, and files that wait for partners between files that compute.

A process takes a whole file at a time (``--dist loadfile``). A file of the first suites takes up to some minutes, one
of the last some seconds: what is left over at the end is short. Tests with brokers, stores or clusters of others wait
for those most of the time; beside one that computes the processors are busy. Hook for ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import TypeVar

import pytest
from partners import leave_out
from suite_minutes import folder_of

LONGEST_FIRST = (
    "clients",
    "peer",
    "cluster",
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
WAITING = frozenset({"clients", "peer", "cluster"})
"""Folders whose tests wait for partners in processes of their own."""
Thing = TypeVar("Thing")


def in_turns(one: Sequence[Thing], other: Sequence[Thing]) -> list[Thing]:
    """The first of each, the second of each, and so on; behind the shorter one the rest of the longer."""
    return [thing for thing in chain.from_iterable(zip_longest(one, other)) if thing is not None]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Hook: leaves out what cannot run here, then sorts the files; within one, tests stay as they are."""
    leave_out(config, items)
    rank = {folder: number for number, folder in enumerate(LONGEST_FIRST)}
    files: dict[str, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: rank.get(folder_of(item.nodeid), len(rank))):
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    waiting = [tests for file, tests in files.items() if folder_of(file) in WAITING]
    computing = [tests for file, tests in files.items() if folder_of(file) not in WAITING]
    items[:] = chain.from_iterable(in_turns(waiting, computing))
