"""Partners that some tests need: RocketMQ's Java, a virtual display, Spark. Hooks for ``tests/conftest.py``.

Without its partner a test is left out with a word; where ``CI`` is set it fails and says why. None is skipped silently.
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
    """What a virtual display lacks here, in words; None where it can run."""
    return None if shutil.which("Xvfb") else "there is no Xvfb on the path"


def no_spark() -> str | None:
    """What Spark lacks here, in words: a package, or Java; None where it can start."""
    lacking = [name for name in ("pyspark", "pandas", "pyarrow") if importlib.util.find_spec(name) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    try:
        find_java()
    except CannotStart as error:
        return str(error)
    return None


PARTNERS: dict[str, Callable[[], str | None]] = {"peer": peer.missing, "display": no_display, "spark": no_spark}
LONGEST = {"--spark-full": "spark_full", "--clients-full": "clients_full"}
"""Options, and the tests that run with them only."""
FULL_FORM = "--full-form"
"""Option with which all cases of tests marked ``full_form`` run."""
_LACKS = pytest.StashKey[dict[str, str]]()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take from ``items`` what cannot run here, unless CI is to hear of it, and the longest tests without their option;
    pytest's closing line counts both.
    """
    for option, marker in LONGEST.items():
        long = [item for item in items if item.get_closest_marker(marker)] if not config.getoption(option) else []
        if long:
            config.hook.pytest_deselected(items=long)
            items[:] = [item for item in items if item not in long]
    if not config.getoption(FULL_FORM) and (surplus := surplus_cases(items)):
        config.hook.pytest_deselected(items=surplus)
        short = {item.nodeid for item in surplus}
        items[:] = [item for item in items if item.nodeid not in short]
    marked = {marker: [item for item in items if item.get_closest_marker(marker)] for marker in PARTNERS}
    lacks = {marker: said for marker, tests in marked.items() if tests and (said := PARTNERS[marker]())}
    config.stash[_LACKS] = lacks
    if lacks and not os.environ.get("CI"):
        left_out = [item for marker in lacks for item in marked[marker]]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def surplus_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    """Cases that the short form leaves out: of each test marked ``full_form(keep=N)`` all but N.

    Which N is drawn by their names: the same in each run, and not every third where the cases are laid out in rows.
    """
    tests: dict[str, list[pytest.Item]] = {}
    kept: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("full_form"):
            test = item.nodeid.partition("[")[0]
            tests.setdefault(test, []).append(item)
            kept[test] = mark.kwargs.get("keep", 0)
    drawn = {test: sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode())) for test, cases in tests.items()}
    return [case for test, cases in drawn.items() for case in cases[kept[test] :]]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hook: fails a test whose partner is missing, with the reason."""
    for marker, said in item.config.stash.get(_LACKS, {}).items():
        if item.get_closest_marker(marker):
            pytest.fail(f"{marker}: {said}", pytrace=False)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Hook: the word about what is left out."""
    done = "fail" if os.environ.get("CI") else "are left out"
    return [f"tests marked {marker} {done}: {said}" for marker, said in config.stash.get(_LACKS, {}).items()]
