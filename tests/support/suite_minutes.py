"""Minutes of each suite, and the files that took longest, printed before pytest's closing line; a suite is a folder
under ``tests``. The name of a failed test is printed at once: a run that is cut off has already printed it.

The time of the processors is printed beside the elapsed time, including programs that a test started and that have
ended: if the two differ much, a test waits.

Tests may run in several processes: a test's message for the end of the run travels with its report.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

REPORTED_FILES = 40
"""How many files are told."""
SUITES = {
    "engine": "unit",
    "golden_agree": "golden",
    "peer": "peer",
    "viewer": "viewer",
    "journeys": "viewer",
    "faults": "faults",
    "fuzz": "fuzz",
    "project": "project",
    "bench": "bench",
}
TESTS = Path(__file__).resolve().parent.parent
COVERAGE_FOLDER = Path(folder) if (folder := os.environ.pop("STORESCOPE_COVERAGE", "")) else None
"""Where ``.ci/run`` lets branch coverage be written, in the first process only."""


def folder_of(nodeid: str) -> str:
    """Return the first folder under ``tests`` of a test, or ""."""
    parts = nodeid.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "tests" else ""


def suite_of(nodeid: str) -> str:
    """Return the suite of a test by its folder."""
    folder = folder_of(nodeid)
    return SUITES.get(folder, folder or "other")


def minutes(reports: dict[str, list[pytest.TestReport]]) -> list[str]:
    """Return one line a suite: its tests, its failures, their time with fixtures."""
    seconds, worked = _seconds(reports, suite_of)
    tests: dict[str, set[str]] = {}
    failed: dict[str, set[str]] = {}
    for outcome, listed in reports.items():
        for report in listed:
            if not isinstance(report, pytest.TestReport):
                continue
            suite = suite_of(report.nodeid)
            tests.setdefault(suite, set()).add(report.nodeid)
            if outcome in {"failed", "error"}:
                failed.setdefault(suite, set()).add(report.nodeid)
    lines = [
        f"{suite:<10}{len(tests[suite]):>7} tests{len(failed.get(suite, ())):>5} failed{seconds[suite] / 60:>8.1f} min"
        f"{worked[suite] / 60:>8.1f} of a processor"
        for suite in sorted(seconds)
    ]
    text = f"{sum(seconds.values()) / 60:>8.1f} min{sum(worked.values()) / 60:>8.1f} of a processor"
    return [*lines, f"{'all':<10}{sum(map(len, tests.values())):>7} tests{'':12}{text}"]


def longest(reports: dict[str, list[pytest.TestReport]]) -> list[str]:
    """Return one line for each of the files that took longest."""
    seconds, worked = _seconds(reports, lambda nodeid: nodeid.partition("::")[0])
    files = sorted(seconds, key=lambda file: -seconds[file])[:REPORTED_FILES]
    return [f"{seconds[file]:>7.1f} s{worked[file]:>8.1f} of a processor  {file}" for file in files]


def _seconds(
    reports: dict[str, list[pytest.TestReport]], place: Callable[[str], str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return elapsed seconds by ``place``, and those of the processors."""
    passed: dict[str, float] = defaultdict(float)
    worked: dict[str, float] = defaultdict(float)
    for report in (item for listed in reports.values() for item in listed):
        if isinstance(report, pytest.TestReport):
            passed[place(report.nodeid)] += report.duration
            worked[place(report.nodeid)] += getattr(report, "processor", 0.0)
    return passed, worked


class Processor:
    """Notes with each report the processor time of its part of a test."""

    def __init__(self) -> None:
        self._before = sum(os.times()[:4])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        """Hook."""
        report = yield
        now = sum(os.times()[:4])
        report.processor, self._before = now - self._before, now
        return report


def account(item: pytest.Item, heading: str, lines: Iterable[str]) -> None:
    """Have ``lines`` printed below ``heading`` at the end of the run; to be called before the test ends."""
    item.user_properties.extend((heading, line) for line in lines)


def accounts(reports: Iterable[object]) -> dict[str, list[str]]:
    """Return the lines of tests by heading."""
    output: dict[str, list[str]] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport) and report.when == "call":
            for heading, line in report.user_properties:
                output.setdefault(heading, []).append(str(line))
    return output


class NamesOfFailures:
    """Prints the name of a test when it fails."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hook."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and isinstance(terminal, pytest.TerminalReporter):
            terminal.ensure_newline()
            terminal.write_line(f"failed: {report.nodeid} ({report.when})")


def pytest_configure(config: pytest.Config) -> None:
    """Hook."""
    config.pluginmanager.register(NamesOfFailures(config))
    config.pluginmanager.register(Processor())


def coverage_report(folder: Path, patience_s: float = 180) -> list[str]:
    """Return the lines of the branch coverage that ``.ci/run`` measures beside the tests, and remove its ``folder``."""
    end = time.monotonic() + patience_s
    while not (folder / "report").exists():
        if time.monotonic() > end:
            return ["branch coverage is not measured yet"]
        time.sleep(0.2)
    lines = (folder / "report").read_text("utf-8").splitlines()
    shutil.rmtree(folder)
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Hook: print the lines of tests, the table of suites, the longest files, and the branch coverage."""
    if COVERAGE_FOLDER is not None:
        terminalreporter.section("branch coverage")
        for line in coverage_report(COVERAGE_FOLDER):
            terminalreporter.write_line(line)
    reports = {key: listed for key, listed in terminalreporter.stats.items() if key}
    for heading, lines in accounts(report for listed in reports.values() for report in listed).items():
        terminalreporter.section(heading)
        for line in lines:
            terminalreporter.write_line(line)
    # Set-up and tear-down of passed tests stand under the empty key.
    reports["phases"] = terminalreporter.stats.get("", [])
    terminalreporter.section("minutes of each suite")
    for line in minutes(reports):
        terminalreporter.write_line(line)
    terminalreporter.section("longest files")
    for line in longest(reports):
        terminalreporter.write_line(line)
