"""The list of this session's jobs, newest first, with one row for each job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from viewer.look.assets import tr
from viewer.look.theme import C, follow, mono, px, theme, ui
from viewer.pipeline.state import JobState
from viewer.widgets.focus import FocusRing
from viewer.widgets.paint import mark

DISPLAY_ROLE, TOOL_TIP_ROLE, ACCESSIBLE_TEXT_ROLE = 0, 3, 11
JobRole = int(Qt.ItemDataRole.UserRole) + 1
STATUS_MARKS = {"running": "live", "done": "ok", "failed": "error", "cancelled": "warn"}
"""Status of a job → its mark."""
AnyIndex = QModelIndex | QPersistentModelIndex


class JobList(QAbstractListModel):
    """The list of jobs. ``words`` returns a job's name, its stores and its status, each in a few words."""

    def __init__(self, words: Callable[[JobState], tuple[str, str, str]], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words = words
        self.jobs: list[JobState] = []

    def set_jobs(self, jobs: Sequence[JobState]) -> None:
        """Show these jobs; rows that stay keep their place."""
        new = list(jobs)
        removed_rows = [row for row, job in enumerate(self.jobs) if all(job is not new_job for new_job in new)]
        for row in reversed(removed_rows):
            self.beginRemoveRows(QModelIndex(), row, row)
            del self.jobs[row]
            self.endRemoveRows()
        for row, job in enumerate(new):
            if row >= len(self.jobs) or self.jobs[row] is not job:
                self.beginInsertRows(QModelIndex(), row, row)
                self.jobs.insert(row, job)
                self.endInsertRows()

    def changed(self, job: JobState) -> None:
        """Repaint the row of a job that has progressed."""
        row = self.number_of(job)
        if row >= 0:
            self.dataChanged.emit(self.index(row), self.index(row))

    def number_of(self, job: JobState | None) -> int:
        """Return the row of a job, −1 if it is not listed."""
        return next((row for row, listed in enumerate(self.jobs) if listed is job), -1)

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.jobs)

    def data(self, index: AnyIndex, role: int = DISPLAY_ROLE) -> object:
        if not 0 <= index.row() < len(self.jobs):
            return None
        job = self.jobs[index.row()]
        if role == JobRole:
            return job
        name, stores, job_status = self._words(job)
        if role == DISPLAY_ROLE:
            return name
        if role == TOOL_TIP_ROLE:
            return f"{job.request.command()}\n{job_status}"
        if role == ACCESSIBLE_TEXT_ROLE:
            return f"{tr(job.status)}. {name} {when(job)}. {stores}. {job_status}"
        return None


def when(job: JobState) -> str:
    """``09:58``: when it began."""
    return time.strftime("%H:%M", time.localtime(job.began))


HIGH = 72
ROLES = {"running": "accent", "done": "ok", "failed": "error", "cancelled": "warn"}


class JobsView(QListView):
    """``chosen(job)`` as another row is chosen."""

    chosen = Signal(object)

    def __init__(self, words: Callable[[JobState], tuple[str, str, str]]) -> None:
        super().__init__()
        self.setObjectName("pipeline.jobs")
        self.setAccessibleName(tr("Jobs of this session"))
        self.jobs = JobList(words, self)
        self.setModel(self.jobs)
        self.setItemDelegate(_Rows(words, self))
        self.setUniformItemSizes(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumHeight(px(HIGH))
        FocusRing(self)
        self.selectionModel().currentChanged.connect(self._moved)
        follow(self, self.doItemsLayout)

    def _moved(self, current: QModelIndex, _before: QModelIndex) -> None:
        job = current.data(JobRole)
        if job is not None:
            self.chosen.emit(job)

    def choose(self, job: JobState | None) -> None:
        """Choose the row of ``job``."""
        row = self.jobs.number_of(job)
        if row >= 0 and self.currentIndex().row() != row:
            self.setCurrentIndex(self.jobs.index(row))


class _Rows(QStyledItemDelegate):
    def __init__(self, words: Callable[[JobState], tuple[str, str, str]], parent: QWidget) -> None:
        super().__init__(parent)
        self._words = words

    def sizeHint(self, _option: QStyleOptionViewItem, _index: AnyIndex) -> QSize:
        return QSize(px(200), px(HIGH))

    def paint(self, p: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        job = index.data(JobRole)
        box = QRectF(option.rect)
        state = option.state
        on = bool(state & QStyle.StateFlag.State_Selected)
        p.save()
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        p.fillRect(box, C("select" if on else "hover" if state & QStyle.StateFlag.State_MouseOver else "pane"))
        p.fillRect(QRectF(box.left(), box.bottom() - 1, box.width(), 1), C("hair"))
        if on:
            p.fillRect(QRectF(box.left(), box.top(), 3, box.height()), C("accent"))
        self._paint_words(p, box, job, on)
        if state & QStyle.StateFlag.State_HasFocus:
            p.setPen(C("accent"))
            p.setBrush(Qt.BrushStyle.NoBrush)
            p.drawRect(box.adjusted(1, 1, -2, -2))
        p.restore()

    def _paint_words(self, p: QPainter, box: QRectF, job: JobState, on: bool) -> None:
        z = px(100) / 100
        name, stores, job_status = self._words(job)
        left_x, right = box.left() + px(34), box.right() - px(14)
        mark(p, STATUS_MARKS[job.status], QPointF(box.left() + px(20), box.top() + px(21)), 4.5 * z)
        p.setFont(ui(13, 600))
        p.setPen(C("text"))
        p.drawText(QRectF(left_x, box.top() + px(10), right - left_x - px(44), px(20)), _VERTICAL, name)
        p.setFont(mono(11))
        p.setPen(C("text2" if on else "text3"))
        p.drawText(QRectF(right - px(60), box.top() + px(10), px(60), px(20)), _END, when(job))
        p.setFont(ui(12))
        metrics = QFontMetrics(p.font())
        least = min(metrics.horizontalAdvance(stores), px(70))
        room = right - left_x - least - px(10)
        status_text = metrics.elidedText(job_status, Qt.TextElideMode.ElideRight, int(room))
        status_width = metrics.horizontalAdvance(status_text)
        p.setPen(C("text2"))
        stores_width = int(right - left_x - status_width - px(10))
        line = QRectF(left_x, box.top() + px(30), right - left_x, px(18))
        p.drawText(line, _VERTICAL, metrics.elidedText(stores, Qt.TextElideMode.ElideMiddle, stores_width))
        p.setPen(C(ROLES[job.status]))
        p.drawText(line, _END, status_text)
        track = QRectF(left_x, box.top() + px(55), right - left_x, px(3))
        p.setPen(Qt.PenStyle.NoPen)
        p.setBrush(C("line" if theme.dark else "hair"))
        p.drawRoundedRect(track, 1.5, 1.5)
        part = job.part
        p.setBrush(C(ROLES[job.status]))
        if part is None:
            p.drawRoundedRect(QRectF(left_x + track.width() * 0.35, track.top(), track.width() * 0.3, px(3)), 1.5, 1.5)
        elif part > 0:
            p.drawRoundedRect(QRectF(left_x, track.top(), max(px(3), track.width() * part), px(3)), 1.5, 1.5)


_VERTICAL = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
_END = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
