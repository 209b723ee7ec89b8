"""Results of a pipeline job: its tables, and buttons for its output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import plain
from viewer.look.theme import px
from viewer.pipeline.job_rows import when
from viewer.pipeline.state import MAX_ROWS, JobState
from viewer.pipeline.tables import TABLES, store_of
from viewer.pipeline.words import INSTALL, lasted, outcome
from viewer.widgets.basics import Button, Chip, Label, PaneHead, StatusMark, ThemedPanel
from viewer.widgets.boxes import column, row
from viewer.widgets.columns import Record
from viewer.widgets.record_state import State, StateLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import BarPainter, RowPainter
from viewer.widgets.word_tabs import WordTabs

KINDS = {
    "dispatched": "dispatched",
    "difference": "difference",
    "whereResult": "whereResult",
    "rule": "finding",
    "each": "finding",
}
"""Table → type of its records, if their names differ."""


class Failure(ThemedPanel):
    """The reason why a job failed, a link to Spark's own log, and the button "Run again" (``rerunRequested()``)."""

    rerunRequested = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._log = ""
        self._said = Label("", 13, "text", wrap=True, select=True)
        self._said.setObjectName(f"{name}.words")
        self._where = Label("", 12, "text2", wrap=True, select=True)
        self._run = Button(tr("Run again"))
        self._run.setObjectName(f"{name}.again")
        self._run.clicked.connect(self.rerunRequested)
        self._open = Button(tr("Show the log"), "flat")
        self._open.setObjectName(f"{name}.log")
        self._open.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self._log)))
        words = column(self._said, self._where, row(self._run, self._open, None, gap=8), gap=10)
        box = QHBoxLayout(self)
        box.setContentsMargins(px(24), px(24), px(24), px(16))
        box.setSpacing(px(10))
        box.addWidget(StatusMark("error", 5.5), 0, Qt.AlignmentFlag.AlignTop)
        box.addWidget(words, 1, Qt.AlignmentFlag.AlignTop)

    def show_job(self, job: JobState) -> None:
        """The words of this job."""
        headline, *details = failure_words(job).split("\n")
        self._said.setText(headline)
        self._where.setText("\n".join(details))
        self._where.setVisible(bool(details))
        self._log = job.log_file
        self._open.setVisible(bool(job.log_file) and Path(job.log_file).exists())
        self.setAccessibleName(headline)


class ResultPanel(QWidget):
    """The tables of one job. Emits ``placeInStoreRequested(place, store)`` when a link is followed."""

    placeInStoreRequested = Signal(object, str)
    exportRequested = Signal()
    rerunRequested = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._name = name
        self.job: JobState | None = None
        self._tabs: dict[str, WordTabs] = {}
        self._most = 1
        self._seen: tuple[int, int, str] = (0, 0, "")
        self.says_more = True
        """Whether there is room for a note in the head."""
        self.export = Button(tr("Export…"), "flat")
        self.export.setObjectName(f"{name}.export")
        self.export.clicked.connect(self.exportRequested)
        self._chips = QWidget()
        chips = QHBoxLayout(self._chips)
        chips.setContentsMargins(0, 0, 0, 0)
        chips.setSpacing(px(6))
        self._counts = {kind: Chip(kind, "") for kind in ("error", "warn", "note")}
        for chip in self._counts.values():
            chip.hide()
            chips.addWidget(chip)
        holder = QWidget()
        self._tab_line = QHBoxLayout(holder)
        self._tab_line.setContentsMargins(0, 0, 0, 0)
        self.head = PaneHead("", "", self._chips, holder, self.export)
        stats_table = TABLES["stats"][0]
        self.table = RecordView(f"{name}.table", stats_table[2])
        self.table.placeRequested.connect(self._follow)
        self.state = StateLine()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        self.failure = Failure(f"{name}.failure")
        self.failure.rerunRequested.connect(self.rerunRequested)
        for part in (self.head, self.failure, self.table, self.table.strip, self.state):
            box.addWidget(part, 1 if part in (self.table, self.failure) else 0)
        self._bars, self._plain = BarPainter("bytes", self._bar), RowPainter()
        self.state.show_state(None)

    # ---- what the pane calls -----------------------------------------------------------------------------------------

    def show_job(self, job: JobState | None) -> None:
        """Show the results of ``job``; the selection stays while it is the same job."""
        if job is not self.job:
            self.job, self._seen = job, (0, 0, "")
        if job is None:
            return
        tabs = self._tabs_of(job)
        for name, table_tabs in self._tabs.items():
            table_tabs.setVisible(name == job.request.job and len(TABLES.get(name, ())) > 1)
        self._show_head(job)
        self._show_rows(job, tabs)
        self._show_state(job)

    def table_key(self) -> str:
        """The table in front."""
        if self.job is None or not TABLES.get(self.job.request.job):
            return ""
        tabs = self._tabs.get(self.job.request.job)
        return tabs.key if tabs is not None else TABLES[self.job.request.job][0][0]

    def choose(self, key: str) -> None:
        """Bring a table to the front."""
        if self.job is not None and self.job.request.job in self._tabs:
            self._tabs[self.job.request.job].choose(key)

    def export_name(self) -> str:
        """The file that an export proposes."""
        return f"{self.job.request.job}-{self.table_key()}.jsonl" if self.job is not None else "pipeline.jsonl"

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _tabs_of(self, job: JobState) -> WordTabs | None:
        tables = TABLES.get(job.request.job, ())
        if len(tables) < 2:
            return None
        tabs = self._tabs.get(job.request.job)
        if tabs is None:
            tabs = WordTabs(f"{self._name}.{job.request.job}", [(key, tr(label)) for key, label, *_ in tables])
            tabs.chosen.connect(lambda _key: self.show_job(self.job))
            self._tabs[job.request.job] = tabs
            self._tab_line.addWidget(tabs)
        return tabs

    def _show_head(self, job: JobState) -> None:
        names = {
            "verify": tr("Found so far") if job.running else tr("Findings"),
            "rebuild": tr("Rebuilt"),
            "trace": tr("Traced"),
        }
        self.head.set_title(names.get(job.request.job, f"{job.request.job} · {when(job)}"))
        self.head.set_note(self._note(job) if self.says_more else "")
        for kind, chip in self._counts.items():
            count = job.severities[kind] if job.request.job == "verify" else 0
            chip.set_chip(kind, f"{count:,}")
            chip.setVisible(count > 0)
        self.export.setVisible(bool(TABLES.get(job.request.job)))

    def _note(self, job: JobState) -> str:
        match job.request.job:
            case "verify":
                return tr("a link goes to the bytes")
            case "stats":
                return sums_words(job)
        return outcome(job) if job.status == "done" else ""

    def _show_rows(self, job: JobState, tabs: WordTabs | None) -> None:
        tables = TABLES.get(job.request.job, ())
        self.failure.setVisible(job.status == "failed")
        if job.status == "failed":
            self.failure.show_job(job)
        self.table.setVisible(bool(tables) and not (job.status == "failed" and not job.version))
        if not tables:
            return
        key = tabs.key if tabs is not None else tables[0][0]
        if (job.number, job.version, key) == self._seen:
            return
        same = self._seen[0] == job.number and self._seen[2] == key
        self._seen = (job.number, job.version, key)
        _, label, kind, rows_of = next(table for table in tables if table[0] == key)
        rows = rows_of(job)
        self._most = max((row.get("bytes") or 0 for row in rows if isinstance(row, dict)), default=1) or 1
        self.table.setAccessibleName(f"{job.request.job}: {tr(label)}")
        self.table.painter = self._bars if job.request.job == "stats" else self._plain
        if kind is not self.table.kind:
            self.table.set_rows([])
            self.table.set_kind(kind)
        chosen = self.table.currentIndex().row() if same else -1
        self.table.set_rows(list(rows))
        if chosen >= 0:
            self.table.go_to_row(chosen)

    def _bar(self, row: Record) -> tuple[str, float] | None:
        if not isinstance(row, dict) or "bytes" not in row or row.get("type") == "statsFile":
            return None
        return str(row.get("topic") or ""), (row["bytes"] or 0) / self._most

    def _show_state(self, job: JobState) -> None:
        state = self._state(job)
        tables = bool(TABLES.get(job.request.job))
        in_table = (
            state is not None and tables and (state.kind in {"empty", "hint", "error"} and not self.table.total_rows())
        )
        self.table.set_state(state if in_table else None)
        self.state.show_state(None if in_table else state)

    def _state(self, job: JobState) -> State | None:
        if job.status == "failed":
            return None
        if job.status == "cancelled":
            text = tr("The job was stopped; nothing was left behind.")
            if self.table.total_rows():
                text += " " + tr("These rows came before that.")
            return State("cut", text, steps=((tr("Run again"), self.rerunRequested.emit),))
        if job.running:
            return None if self.table.total_rows() else State("hint", tr("The results come at the end of the job."))
        table = KINDS.get(self.table_key(), self.table_key())
        if job.counts[table] > MAX_ROWS:
            return State(
                "cut",
                tr_plural(
                    "The first {shown:,} of {n:,} row; the command line gives all of them.",
                    "The first {shown:,} of {n:,} rows; the command line gives all of them.",
                    shown=MAX_ROWS,
                    n=job.counts[table],
                ),
            )
        if not self.table.total_rows() and TABLES.get(job.request.job):
            return State("empty", nothing_words(job))
        notes = [engine_words(line) for line in job.spark_lines]
        return State("note", " · ".join(plain(line) for line in notes[-3:])) if notes else None

    def _follow(self, place: object) -> None:
        row: Any = self.table.current_row()
        self.placeInStoreRequested.emit(place, store_of(row) if row is not None else "")


def sums_words(job: JobState) -> str:
    """Return whether the parts of all files add up to their bytes, in words."""
    total = next(iter(job.rows.get("stats", [])), None)
    if total is None:
        return ""
    names = ("unitBytes", "headers", "stale", "blank", "damage", "zeros")
    parts = sum(int(total.get(name) or 0) for name in names)
    if parts == total.get("bytes"):
        return tr("sums equal the files")
    return tr_plural(
        "{n:,} byte of {whole:,} is accounted for",
        "{n:,} bytes of {whole:,} are accounted for",
        n=parts,
        whole=total.get("bytes"),
    )


def nothing_words(job: JobState) -> str:
    """Why a table of a job that ended well is empty."""
    match job.request.job:
        case "verify":
            return tr("No problems found: every rule checked everything.")
        case "rebuild":
            return (
                tr("No queue and no index differs from the existing ones.")
                if job.request.compare
                else tr("It was not compared with the existing files.")
            )
    return tr("Nothing of this kind is in these stores.")


def failure_words(job: JobState) -> str:
    """Return the job's error in one clear line, and the place of Spark's own output."""
    why = job.why
    if not why:
        why = tr("The job's process ended with code {code}, after {time}.", code=job.code, time=lasted(job.seconds))
    text = engine_words(why)
    if "not installed here" in why or "Java" in why:
        text += "\n" + tr("What a job needs: {command}, and Java 17 or 21.", command=INSTALL)
    if job.log_file and Path(job.log_file).name not in why:
        text += "\n" + tr("Spark's log: {path}", path=job.log_file)
    return text
