"""What work asks of its job, wherever it runs: in a thread (:class:`viewer.runtime.jobs.Control`) or in the worker
process (:class:`viewer.runtime.worker.WorkerControl`). No Qt.
"""

from __future__ import annotations

from typing import Protocol


class Control(Protocol):
    """Whether to stop, and where to say how far the work is."""

    @property
    def cancelled(self) -> bool:
        """Whether to stop; ask every few milliseconds."""
        ...

    def check(self) -> None:
        """Raise where the work was told to stop."""
        ...

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how far the work is."""
        ...


class Emitting(Control, Protocol):
    """The worker's: what is found can be sent before the end."""

    def emit(self, items: object) -> None:
        """Send something that was found; batch what is small."""
        ...
