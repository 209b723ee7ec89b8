"""Partners that some tests need: RocketMQ's Java, a virtual display, Spark. Hooks for ``tests/conftest.py``.

Without its partner a test is left out with a message; with ``CI`` set it fails and says why. None is skipped silently.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import zlib
from collections.abc import Callable

import peer
import pytest

from engine.pipeline.java import CannotStart, find_java


def no_display() -> str | None:
    """Return what a virtual display lacks here, in words; None if it can run."""
    return None if shutil.which("Xvfb") else "there is no Xvfb on the path"


def no_spark() -> str | None:
    """Return what Spark lacks here, in words: a package, or Java; None if it can start."""
    lacking = [name for name in ("pyspark", "pandas", "pyarrow") if importlib.util.find_spec(name) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    try:
        find_java()
    except CannotStart as error:
        return str(error)
    return None


PARTNERS: dict[str, Callable[[], str | None]] = {"peer": peer.missing, "display": no_display, "spark": no_spark}
LONG_RUN_OPTIONS = {"--spark-full": "spark_full", "--clients-full": "clients_full"}
"""Options, and the tests that run with them only."""
FULL_FORM = "--full-form"
"""Option with which all cases of tests marked ``full_form`` run."""
_LACKS = pytest.StashKey[dict[str, str]]()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove tests that cannot run here from ``items``, unless CI is set, and the longest tests without their option;
    pytest's closing line counts both.
    """
    for option, marker in LONG_RUN_OPTIONS.items():
        long_tests = [item for item in items if item.get_closest_marker(marker)] if not config.getoption(option) else []
        if long_tests:
            config.hook.pytest_deselected(items=long_tests)
            items[:] = [item for item in items if item not in long_tests]
    if not config.getoption(FULL_FORM) and (surplus := surplus_cases(items)):
        config.hook.pytest_deselected(items=surplus)
        surplus_ids = {item.nodeid for item in surplus}
        items[:] = [item for item in items if item.nodeid not in surplus_ids]
    marked = {marker: [item for item in items if item.get_closest_marker(marker)] for marker in PARTNERS}
    lacks = {marker: reason for marker, tests in marked.items() if tests and (reason := PARTNERS[marker]())}
    config.stash[_LACKS] = lacks
    if lacks and not os.environ.get("CI"):
        left_out = [item for marker in lacks for item in marked[marker]]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def surplus_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return cases that the short form leaves out: all but N of each test marked ``full_form(keep=N)``.

    Their names determine the N cases: the same in each run, and not every third of cases that are laid out in rows.
    """
    tests: dict[str, list[pytest.Item]] = {}
    kept_count: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("full_form"):
            test = item.nodeid.partition("[")[0]
            tests.setdefault(test, []).append(item)
            kept_count[test] = mark.kwargs.get("keep", 0)
    drawn = {test: sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode())) for test, cases in tests.items()}
    return [case for test, cases in drawn.items() for case in cases[kept_count[test] :]]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hook: fail a test whose partner is missing, with the reason."""
    for marker, reason in item.config.stash.get(_LACKS, {}).items():
        if item.get_closest_marker(marker):
            pytest.fail(f"{marker}: {reason}", pytrace=False)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Hook: report the tests that are left out."""
    effect = "fail" if os.environ.get("CI") else "are left out"
    return [f"tests marked {marker} {effect}: {reason}" for marker, reason in config.stash.get(_LACKS, {}).items()]
