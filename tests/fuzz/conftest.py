"""Account of the campaigns, printed at the end of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suite_minutes import account


@pytest.fixture
def fuzz_account(request: pytest.FixtureRequest) -> Callable[[list[str]], None]:
    """``fuzz_account(lines)``: have lines printed at the end of the run."""
    return lambda lines: account(request.node, "fuzz campaign", lines)
