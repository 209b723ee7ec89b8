"""The view that running work has of its job: in a thread (:class:`viewer.runtime.jobs.Control`) or in the worker
process (:class:`viewer.runtime.worker.WorkerControl`). No Qt.
"""

from __future__ import annotations

from typing import Protocol


class Control(Protocol):
    """Says when work must stop, and receives its progress."""

    @property
    def cancelled(self) -> bool:
        """True when the work must stop; check every few milliseconds."""
        ...

    def check(self) -> None:
        """Raise if the work must stop."""
        ...

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report progress."""
        ...
