"""The Space view: every byte by topic, queue and day; what retention deletes next and what prevents it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, size
from viewer.look.theme import px
from viewer.look.topic_colours import colours_of
from viewer.pane import Pane
from viewer.pane.exporting import ask_export
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place, Search
from viewer.runtime.settings import default_cache
from viewer.runtime.worker import WorkerDied
from viewer.space.areas import GROUPINGS, MEASURES, REST_PREFIX, area_of
from viewer.space.day_bars import DayBars
from viewer.space.facts import (
    area_facts,
    blocks_of,
    cache_words,
    flags_of,
    queue_counts,
    retention_note,
    retention_sentences,
    status_words,
)
from viewer.space.file_strip import FilePanel
from viewer.space.rows import NARROW, SLIM, SPACE, SpaceRow, day_bars, space_rows
from viewer.space.space_line import Block, SpaceLine
from viewer.widgets.areas import Area, find
from viewer.widgets.basics import Button, Hairline, Label, PaneHead, Paper
from viewer.widgets.boxes import column, splitter, stacked
from viewer.widgets.facts import Facts
from viewer.widgets.log_line import LineFile, LogLine
from viewer.widgets.record_state import State, StateLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import BarPainter
from viewer.widgets.skew_bars import SkewBars
from viewer.widgets.treemap import Treemap
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.inspection.space.account import Space
    from viewer.runtime.store_session import StoreSession
    from viewer.space.work import Forecast

QUICK_ACCOUNT_MS, QUICK_ACCOUNT_BYTES = 1500, 256 << 20
"""An account is repeated as the store grows if it took at most this time, or if the log is at most this large; else
only on request.
"""
PAUSE_MS = 3000
WORK = "viewer.space.work"
CACHE_FOLDER = "space"
"""Cache folder for the counts of finished files."""


class SpacePane(Pane):
    """View of how the bytes of a store directory are used."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("space.pane")
        self._account: Space | None = None
        self._forecast: Forecast | None = None
        self._root = Area("", "", 0)
        self._pending_topic = ""
        self._rows: list[SpaceRow] = []
        self._max_topic_bytes = 1
        self._running = self._started = False
        self._repeat_timer = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._repeat_timer.timeout.connect(self._repeat)
        self._build()

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.line = SpaceLine()
        self.file = FilePanel()
        self.group = WordTabs("space.group", [(key, tr(word)) for key, word in GROUPINGS])
        self.measure = WordTabs("space.measure", [(key, tr(word)) for key, word in MEASURES])
        self.head = PaneHead(
            tr("Space"),
            tr("area is bytes in the directory; darker is newer"),
            self.measure,
            12,
            Label(tr("Group by"), 12, "text3"),
            self.group,
        )
        self.map = Treemap()
        self.state = StateLine()
        self.line.fileChosen.connect(self._file_chosen)
        self.line.fileFollowed.connect(lambda block: self.placeRequested.emit(places.log(block.start)))
        self.file.placed.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self.file.closed.connect(self.line.setFocus)
        self.group.chosen.connect(lambda _key: self._regroup())
        self.measure.chosen.connect(lambda _key: self._regroup())
        self.map.chosen.connect(self._area_chosen)
        self.map.followed.connect(self._follow)
        left_column = stacked(self.line, self.file, self.head, self.map, self.state, room=3)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(False, (left_column, 720), (self._build_side(), 560)))

    def _build_side(self) -> QWidget:
        export = Button(tr("Export…"), "flat")
        export.setObjectName("space.export")
        spark = Button(tr("Count with Spark…"), "flat")
        spark.setObjectName("space.spark")
        spark.setToolTip(tr("The pipeline's stats: messages and bytes by topic, queue, day, producer; of fleets"))
        spark.clicked.connect(lambda: self.placeRequested.emit(Place("pipeline", name="stats")))
        self.table_head = PaneHead(tr("By topic"), "", spark, export)
        self.table = RecordView("space.table", SPACE)
        self.table.setAccessibleName(tr("Bytes by topic"))
        self.table.painter = BarPainter("bytes", self._bar)
        export.clicked.connect(lambda: ask_export(self, self.table, "space.jsonl"))
        self.table.placeRequested.connect(self.placeRequested)
        self.table.rowChosen.connect(self._row_chosen)
        self.table.installEventFilter(self)
        self.days_head = PaneHead(tr("By day"), tr("of store time"))
        self.days = DayBars()
        self.days.dayChosen.connect(self._day_chosen)
        self.facts = Facts(104, notes_below=False)
        self.facts.setObjectName("space.facts")
        self.facts.placeRequested.connect(self.placeRequested)
        self.skew = SkewBars("space.skew", places.queue)
        self.retention_head = PaneHead(tr("Retention"))
        self.retention = Label("", 12, "text2", wrap=True, select=True)
        self.retention.setObjectName("space.retention")
        self.cache = Label("", 12, "text2", wrap=True, select=True)
        self.cache.setObjectName("space.cache")
        details = Paper()
        box = QVBoxLayout(details)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part in (
            self.days_head,
            self.days,
            Hairline(),
            column(self.facts, self.skew, gap=6, margins=(14, 8, 14, 10)),
            Hairline(),
            self.retention_head,
            column(self.retention, margins=(14, 8, 14, 10)),
            Hairline(),
            PaneHead(tr("Page cache"), tr("what of the files is in memory now: the strip under them")),
            column(self.cache, margins=(14, 8, 14, 12)),
        ):
            box.addWidget(part)
        box.addStretch(1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setWidget(details)
        side = splitter(True, (stacked(self.table_head, self.table, self.table.strip), 450), (scroll, 430))
        side.setMinimumWidth(px(400))
        return side

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none; counting begins when the view becomes visible."""
        super().set_session(session)
        self._account = self._forecast = None
        self._running = self._started = False
        self._repeat_timer.stop()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self.table.set_rows([])
        self.table.set_state(None if session is None else State("loading", tr("Counting the bytes of every file …")))
        self.state.show_state(None)
        self.file.set_session(session)
        self.map.choose(())
        self._show_account()
        self._show_forecast()
        if session is not None:
            session.findingsChanged.connect(self._show_broken)
        if session is not None and self.isVisible():
            self._begin()

    def show_place(self, place: Place) -> None:
        """Show the whole directory, or select one topic."""
        self._pending_topic = place.name
        self._begin()
        if self._account is not None:
            self._choose_wanted()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hide two columns of a narrow table so that names and sums stay readable."""
        if watched is self.table and event.type() == QEvent.Type.Resize:
            kind = SLIM if self.table.width() < px(NARROW) else SPACE
            if kind is not self.table.kind:
                self.table.set_kind(kind)
        return False

    def showEvent(self, event: QShowEvent) -> None:
        """Begin to count when the view becomes visible."""
        super().showEvent(event)
        self._begin()

    def refresh(self) -> None:
        """Count again soon after the store has grown, or say that the numbers are old."""
        if self._account is None or self._running or self.session is None:
            return
        if not self._repeat_timer.isActive():  # not restarted, so that a store that grows all the time is counted too
            self._repeat_timer.start()
        if not _is_quick(self._account):
            words = tr("As of {time}; the store has grown since.", time=clock(self._account.at)[:8])
            self.state.show_state(State("stale", words, steps=((tr("Refresh"), self._count),)))

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()

    def busy(self) -> bool:
        """Return True while the first result is awaited."""
        return self._running and self._account is None

    def status(self) -> str:
        """Describe how many bytes are accounted for, and how they were counted."""
        if self._account is None or self.session is None:
            return ""
        return self.session.unread.beside(status_words(self._account, is_complete=not self.session.unread))

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying, exporting and stepping in the table."""
        return table_commands(self, lambda: self.table, "space.jsonl")

    # ---- counting ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.session is not None and not self._started and self.isVisible():
            self._started = True
            self.session.jobs.start(self._read_forecast(self.session))
            self._count()

    def _count(self) -> None:
        session = self.session
        if session is not None and not self._running:
            self._running = True
            session.jobs.start(self._count_bytes(session, quick=self._account is None))

    def _repeat(self) -> None:
        session = self.session
        if session is None or not self.isVisible() or self._account is None:
            return
        if _is_quick(self._account):
            self._count()
        session.jobs.start(self._read_forecast(session))

    async def _count_bytes(self, session: StoreSession, *, quick: bool) -> None:
        def on_items(partial_account: Any) -> None:
            if session is self.session:
                self._show_result(partial_account)

        try:
            account = await session.jobs.in_worker(
                tr("Counting bytes"),
                f"{WORK}:account",
                session.path,
                session.config,
                quick,
                default_cache() / CACHE_FOLDER,
                on_items=on_items,
            )
        except Cancelled:
            account = None
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            if session is self.session:
                self._running = False
                self.table.set_state(State("error", engine_words(str(error))))
                self.map.show_areas(Area("", "", 0), engine_words(str(error)))
            return
        if session is not self.session:
            return
        self._running = False
        if account is not None:
            self._show_result(account)
        if account is None or account.how == "cut":
            words = tr("Stopped. The rest of the log was not looked at.")
            self.state.show_state(State("cut", words, steps=((tr("Go on"), self._count),)))
        else:
            self.state.show_state(None)

    async def _read_forecast(self, session: StoreSession) -> None:
        def on_items(partial: Forecast) -> None:
            if session is self.session and self._forecast is None:
                self._show_result(partial)

        try:
            surroundings = await session.jobs.in_worker(
                tr("Looking at retention"), f"{WORK}:read_forecast", session.path, session.config, on_items=on_items
            )
        except Cancelled:
            return
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            if session is self.session and self._forecast is None:
                self.line.show_files(LogLine(0, 0, 0), (), (), engine_words(str(error)))
                self.retention.setText(engine_words(str(error)))
            return
        if session is self.session:
            self._show_result(surroundings)

    def _show_result(self, result: Any) -> None:
        """Show a result of the worker: a forecast with page cache, or an account."""
        if hasattr(result, "retention"):
            self._forecast = result
        else:
            self._account = result
            self._show_account()
        self._show_forecast()

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show_account(self) -> None:
        account = self._account
        if account is None:
            self.map.show_areas(Area("", "", 0), tr("Counting the bytes of every file …") if self.session else "")
            self.table_head.set_note("")
            self.days.show_days(())
            self.facts.show_facts(())
            self.skew.show_bars(())
            return
        chosen = self.table.current_row()
        rows = self._rows = space_rows(account)
        self._max_topic_bytes = max((row.log for row in rows if row.kind == "topic"), default=1) or 1
        colours = colours_of(self)
        colours.fill([row.key for row in sorted(rows, key=lambda row: -row.log) if row.kind == "topic"])
        self.table.set_rows(rows)
        self.table.horizontalHeader().setSectionsClickable(False)
        self.table.set_state(None)
        note = tr(
            "{size} in {n:,} files, {allocated} allocated",
            size=size(account.bytes),
            n=account.file_count,
            allocated=size(account.allocated),
        )
        self.table_head.set_note(note + " · " + tr("most bytes first, queue files too"))
        placeholder = tr("The days are known when the log was walked.") if account.how in {"queues", "sampled"} else ""
        self.days.show_days(day_bars(account, colours.order), placeholder or tr("The log holds no message."))
        self._regroup()
        if self._pending_topic:
            self._choose_wanted()
        elif chosen is not None:
            self._choose_row(chosen.key)
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_forecast(self) -> None:
        forecast = self._forecast
        if forecast is None:
            self.line.show_files(LogLine(0, 0, 0), (), (), tr("Looking at the files …") if self.session else "")
            self.retention_head.set_note("")
            self.retention.setText("")
            self.cache.setText("")
            return
        retention = forecast.retention
        unread = self.session.unread if self.session is not None else None
        blocks = blocks_of(retention, forecast.cache, self._account, forecast=not unread)
        files = tuple(LineFile(block.name, block.start, block.end) for block in blocks)
        start_offset, end_offset = (files[0].start, files[-1].end) if files else (0, 0)
        self.line.show_files(
            LogLine(start_offset, end_offset, end_offset, files),
            blocks,
            flags_of(retention, self._account) if not unread else (),
            tr("The log has no files."),
        )
        self._show_broken()
        self.retention_head.set_note(retention_note(retention))
        if unread:
            self.retention.setText(unread.beside(tr("It is unknown what is deleted next and who still reads there")))
        else:
            self.retention.setText(" ".join(retention_sentences(retention)))
        self.cache.setText(cache_words(forecast.cache))

    def _show_broken(self) -> None:
        if self.session is not None:
            self.line.show_broken(self.session.broken)

    def _regroup(self) -> None:
        account = self._account
        if account is None:
            return
        self._root = area_of(account, self.group.key, self.measure.key)  # type: ignore[arg-type]
        self.map.show_areas(self._root, tr("The directory holds no bytes."))
        self._show_facts(self.map.path)

    def _show_facts(self, path: tuple[str, ...]) -> None:
        if self._account is None:
            return
        area = find(self._root, path) if path else None
        self.facts.show_facts(area_facts(self._account, path, area))
        self._draw_skew()

    def _draw_skew(self) -> None:
        area = find(self._root, self.map.path) if self.map.path else None
        topic = area.topic if area is not None else ""
        bars = queue_counts(self._account, topic) if self._account is not None and topic else []
        self.skew.show_bars(bars, topic)

    def _bar(self, row: SpaceRow) -> tuple[str, float] | None:
        return (row.key, row.log / self._max_topic_bytes) if row.kind == "topic" else None

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def _choose_wanted(self) -> None:
        topic, self._pending_topic = self._pending_topic, ""
        if topic and find(self._root, (topic,)) is not None:
            self.map.choose((topic,))
            self._show_facts((topic,))
        self._choose_row(topic)

    def _choose_row(self, key: str) -> None:
        index = next((number for number, row in enumerate(self._rows) if row.key == key), None)
        current = self.table.current_row()
        if index is not None and (current is None or current.key != key):
            self.table.go_to(index)

    def _area_chosen(self, path: tuple[str, ...]) -> None:
        self._show_facts(path)
        area = find(self._root, path) if path else None
        if area is None:
            return
        key = area.topic or path[0]
        self._choose_row(key)
        self.placeMoved.emit(Place("space", name="" if key.startswith(REST_PREFIX) else key))

    def _row_chosen(self, row: SpaceRow | None) -> None:
        if row is not None and row.kind == "sum":
            self.map.choose(())
            self._show_facts(())
            self.placeMoved.emit(Place("space"))
            return
        if row is None or self.group.key not in {"topic", "tag"}:
            return
        if self.map.path[:1] != (row.key,) and find(self._root, (row.key,)) is not None:
            self.map.choose((row.key,))
            self._show_facts((row.key,))
            self.placeMoved.emit(Place("space", name=row.topic or ""))

    def _follow(self, path: tuple[str, ...]) -> None:
        area = find(self._root, path)
        target = area.target if area is not None else None
        session = self.session
        if isinstance(target, Place):
            self.placeRequested.emit(target)
        elif isinstance(target, Search) and session is not None:
            session.jobs.start(self._go_to_time(session, target))
        else:
            self.statusMessage.emit(tr("This area is the sum of many and cannot be opened."))

    def _day_chosen(self, day: str) -> None:
        start = time.mktime(time.strptime(day[-10:], "%Y-%m-%d"))
        if self.session is not None:
            self.session.jobs.start(self._go_to_time(self.session, Search("time", day, round(start * 1000))))

    async def _go_to_time(self, session: StoreSession, search: Search) -> None:
        try:
            place, _note = await session.resolve(search)
        except (StoreError, OSError, LookupError, ValueError) as error:
            self.statusMessage.emit(str(error))
            return
        if session is self.session:
            self.placeRequested.emit(place)

    def _file_chosen(self, block: Block) -> None:
        self.file.show_file(block.name)
        self.statusMessage.emit(block.words.replace("\n", " · "))


def _is_quick(account: Space) -> bool:
    """Return True if counting is quick enough to be repeated without a request."""
    log_allocated = sum(kind.allocated for kind in account.kinds if kind.kind == "commitlog")
    return account.took_ms <= QUICK_ACCOUNT_MS or log_allocated <= QUICK_ACCOUNT_BYTES
