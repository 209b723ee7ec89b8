"""Fake job around work that a test calls itself."""

from __future__ import annotations


class StoppedByTest(Exception):
    """Stops the work at the check that the test chose."""


class FakeControl:
    """A fake that keeps reports and items, and stops the work at its ``at``-th check (0 for never)."""

    def __init__(self, at: int = 0, error: type[Exception] = StoppedByTest) -> None:
        self.checks, self.at, self._error = 0, at, error
        self.progress: list[tuple[float, float | None]] = []
        self.items: list[object] = []

    @property
    def cancelled(self) -> bool:
        return bool(self.at) and self.checks >= self.at

    def check(self) -> None:
        self.checks += 1
        if self.checks == self.at:
            raise self._error

    def emit(self, items: object) -> None:
        self.items.append(items)

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        assert total is None or done <= total, note
        self.progress.append((done, total))
