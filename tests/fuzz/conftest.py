"""The account of the campaigns, printed at the end of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_SAID = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Hook: what the campaigns did."""
    said = config.stash.get(_SAID, [])
    if said:
        terminalreporter.write_sep("=", "fuzz campaign")
        for line in said:
            terminalreporter.write_line(line)


@pytest.fixture
def fuzz_account(request: pytest.FixtureRequest) -> Callable[[list[str]], None]:
    """``fuzz_account(lines)``: lines for the end of the run."""
    return request.config.stash.setdefault(_SAID, []).extend
