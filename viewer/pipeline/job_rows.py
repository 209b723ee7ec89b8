"""The jobs of this session as a list model: the newest first, one row a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from viewer.look.assets import tr
from viewer.pipeline.state import JobState

DISPLAY_ROLE, TOOL_TIP_ROLE, ACCESSIBLE_TEXT_ROLE = 0, 3, 11
JobRole = int(Qt.ItemDataRole.UserRole) + 1
STANDINGS = {"running": "live", "done": "ok", "failed": "error", "cancelled": "warn"}
"""Standing → the mark that says it."""
AnyIndex = QModelIndex | QPersistentModelIndex


class JobList(QAbstractListModel):
    """Jobs; ``words`` gives a job's name, the stores, and how it stands, each in a few words."""

    def __init__(self, words: Callable[[JobState], tuple[str, str, str]], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words = words
        self.jobs: list[JobState] = []

    def set_jobs(self, jobs: Sequence[JobState]) -> None:
        """Show these; rows that stay keep their place."""
        new = list(jobs)
        gone = [at for at, job in enumerate(self.jobs) if all(job is not other for other in new)]
        for at in reversed(gone):
            self.beginRemoveRows(QModelIndex(), at, at)
            del self.jobs[at]
            self.endRemoveRows()
        for at, job in enumerate(new):
            if at >= len(self.jobs) or self.jobs[at] is not job:
                self.beginInsertRows(QModelIndex(), at, at)
                self.jobs.insert(at, job)
                self.endInsertRows()

    def changed(self, job: JobState) -> None:
        """The job goes on."""
        at = self.number_of(job)
        if at >= 0:
            self.dataChanged.emit(self.index(at), self.index(at))

    def number_of(self, job: JobState | None) -> int:
        """Its row; -1 where it is not listed."""
        return next((at for at, one in enumerate(self.jobs) if one is job), -1)

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.jobs)

    def data(self, index: AnyIndex, role: int = DISPLAY_ROLE) -> object:
        if not 0 <= index.row() < len(self.jobs):
            return None
        job = self.jobs[index.row()]
        if role == JobRole:
            return job
        name, stores, standing = self._words(job)
        if role == DISPLAY_ROLE:
            return name
        if role == TOOL_TIP_ROLE:
            return f"{job.wish.command()}\n{standing}"
        if role == ACCESSIBLE_TEXT_ROLE:
            return f"{tr(job.standing)}. {name} {when(job)}. {stores}. {standing}"
        return None


def when(job: JobState) -> str:
    """``09:58``: when it began."""
    return time.strftime("%H:%M", time.localtime(job.began))
