"""The order of the files: the longest suites first, and files that wait for partners spread evenly among files that
compute.

A process takes a whole file at a time (``--dist loadfile``). A file of the first suites takes up to some minutes, one
of the last some seconds: so the rest at the end is short. Tests with brokers, stores or clusters of others wait for
those most of the time: when all processes were at such files at once the processors were idle, for half of the time of
a run. The files that start Spark are one piece of work: each process that has one of them starts a Java and compiles
the same code in it. Hooks for ``tests/conftest.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pytest
from partners import leave_out
from suite_minutes import folder_of

FOLDERS_SLOWEST_FIRST = (
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
SECONDS = {
    "journeys": 3.0,
    "pipeline": 3.0,
    "golden_agree": 1.0,
    "crash": 1.0,
    "project": 0.8,
    "faults": 0.5,
    "viewer": 0.2,
}
"""About how long a test of a folder takes, of others :data:`FEW`: nothing but the order follows from it."""
FEW = 0.06
SOON = 0.85
"""Share of the computing behind which no file that waits begins: at the end nobody is waited for."""
ROOT = Path(__file__).resolve().parents[2]
SPARK = "the files that start Spark"
"""Name of the piece of work."""
Thing = TypeVar("Thing")


@functools.cache
def starts_spark(file: str) -> bool:
    """Return True if tests of ``file``, as its node ids name it, start Spark in their own process."""
    return folder_of(file) == "pipeline" and "mark.spark" in (ROOT / file).read_text("utf-8")


def spread(waiting: Sequence[Thing], computing: Sequence[Thing], seconds: Callable[[Thing], float]) -> list[Thing]:
    """Return ``others`` in their order, with ``some`` in theirs among them, as many in each stretch of the others'
    time.
    """
    gap = SOON * sum(map(seconds, computing)) / max(len(waiting), 1)
    order: list[Thing] = []
    passed, begun = 0.0, 0
    for item_ in computing:
        while begun < len(waiting) and passed >= begun * gap:
            order.append(waiting[begun])
            begun += 1
        order.append(item_)
        passed += seconds(item_)
    return [*order, *waiting[begun:]]


def _seconds(tests: list[pytest.Item]) -> float:
    return len(tests) * SECONDS.get(folder_of(tests[0].nodeid), FEW)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Hook: leave out tests that cannot run here, then sort the files; within one, tests stay in order."""
    leave_out(config, items)
    rank = {folder: number for number, folder in enumerate(FOLDERS_SLOWEST_FIRST)}
    files: dict[str, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: rank.get(folder_of(item.nodeid), len(rank))):
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    waiting = [tests for file, tests in files.items() if folder_of(file) in WAITING]
    computing = [
        files[file] for file in sorted(files, key=starts_spark, reverse=True) if folder_of(file) not in WAITING
    ]
    items[:] = chain.from_iterable(spread(waiting, computing, _seconds))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Hook: hand out whole files, and those that start Spark to one process."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return SPARK if starts_spark(file) else file

    return Scheduling(config, log)
