"""How widgets have slow work done: through a runner that their pane gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Runner(Protocol):
    """Runs ``work`` where the loop does not wait for it, then ``done`` with its result or ``failed`` with its error."""

    def __call__(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None: ...


def run_here(work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
    """The runner for what is in memory: at once."""
    try:
        result = work()
    except (OSError, ValueError) as error:
        failed(error)
        return
    done(result)
