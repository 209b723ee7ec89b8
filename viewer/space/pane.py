"""The Space view: every byte by topic, queue and day; what retention deletes next and what prevents it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
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
from viewer.space.areas import GROUPINGS, MEASURES
from viewer.space.day_bars import DayBars
from viewer.space.facts import blocks_of, cache_words, flags_of, retention_note, retention_sentences
from viewer.space.file_strip import FilePanel
from viewer.space.rows import NARROW, SLIM, SPACE, SpaceRow, day_bars
from viewer.space.space_line import Block, SpaceLine
from viewer.space.space_model import SpaceModel, place_of_key
from viewer.widgets.areas import Area
from viewer.widgets.basics import Button, Hairline, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, splitter, stacked
from viewer.widgets.facts import Facts
from viewer.widgets.log_line import LineFile, LogLine
from viewer.widgets.record_state import StateLine, state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import BarPainter
from viewer.widgets.skew_bars import SkewBars
from viewer.widgets.treemap import Treemap
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.inspection.space.account import Space
    from viewer.runtime.store_session import StoreSession
    from viewer.space.work import Forecast

MIN_SIDE_WIDTH = 300
"""Px at 100 % of the table and the facts beside the areas."""
PAUSE_MS = 3000
WORK = "viewer.space.work"
CACHE_FOLDER = "space"
"""Cache folder for the counts of finished files."""


class SpacePane(Pane):
    """View of how the bytes of a store directory are used."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("space.pane")
        self.model = SpaceModel()
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
        self.file.offsetChosen.connect(lambda offset: self.placeRequested.emit(places.log(offset)))
        self.file.closed.connect(self.line.setFocus)
        self.group.chosen.connect(lambda _key: self._regroup())
        self.measure.chosen.connect(lambda _key: self._regroup())
        self.map.chosen.connect(self._area_chosen)
        self.map.areaFollowed.connect(self._follow)
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
        details = ThemedPanel()
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
        side.setMinimumWidth(px(MIN_SIDE_WIDTH))
        return side

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none; counting begins when the view becomes visible."""
        super().set_session(session)
        self.model.open(has_store=session is not None)
        self._repeat_timer.stop()
        self.table.copier = None if session is None else command_copier(self.table, session.command_line)
        self.table.set_rows([])
        self._show_count()
        self.file.set_session(session)
        self.map.choose(())
        self._show_account()
        self._show_forecast()
        if session is not None:
            session.findingsChanged.connect(self._show_broken)
        if session is not None and self.isVisible():
            self._begin()

    def show_place(self, place: Place) -> None:
        """Show the complete directory, or select one topic."""
        self.model.pending_topic = place.name
        self._begin()
        if self.model.account is not None:
            self._choose_pending()

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
        if not self.model.grow():
            return
        if not self._repeat_timer.isActive():  # not restarted, so that a store that grows all the time is counted too
            self._repeat_timer.start()
        self._show_count()

    def retheme(self) -> None:
        """Apply fonts and colours."""
        self.table.refresh_look()

    def busy(self) -> bool:
        """Return True while the first result is awaited."""
        return self.model.is_busy()

    def status(self) -> str:
        """Describe how many bytes are accounted for, and how they were counted."""
        if self.model.account is None or self.session is None:
            return ""
        return self.session.unread.beside(self.model.status(is_complete=not self.session.unread))

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        return self.line, self.map, self.table

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for copying, exporting and stepping in the table."""
        return table_commands(self, lambda: self.table, "space.jsonl")

    # ---- counting ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.session is not None and self.isVisible() and self.model.begin():
            self.session.jobs.start(self._read_forecast(self.session))
            self._count()

    def _count(self) -> None:
        session = self.session
        if session is not None and self.model.begin_count():
            session.jobs.start(self._count_bytes(session, quick=self.model.account is None))

    def _repeat(self) -> None:
        session = self.session
        if session is None or not self.isVisible() or self.model.account is None:
            return
        if self.model.is_quick:
            self._count()
        session.jobs.start(self._read_forecast(session))

    async def _count_bytes(self, session: StoreSession, *, quick: bool) -> None:
        def on_items(partial_account: Space) -> None:
            if session is self.session:
                self.model.take_account(partial_account)
                self._show_account()
                self._show_forecast()

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
                self.model.fail(engine_words(str(error)))
                self._show_count()
                self.map.show_areas(Area("", "", 0), self.model.map_words())
            return
        if session is not self.session:
            return
        self.model.end_count(account)
        if account is not None:
            self._show_account()
            self._show_forecast()
        self._show_count()

    async def _read_forecast(self, session: StoreSession) -> None:
        def on_items(partial: Forecast) -> None:
            if session is self.session and self.model.take_forecast(partial, is_partial=True):
                self._show_forecast()

        try:
            forecast = await session.jobs.in_worker(
                tr("Looking at retention"), f"{WORK}:read_forecast", session.path, session.config, on_items=on_items
            )
        except Cancelled:
            return
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            if session is self.session:
                self.model.fail_forecast(engine_words(str(error)))
                self._show_forecast()
            return
        if session is self.session:
            self.model.take_forecast(forecast)
            self._show_forecast()

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show_count(self) -> None:
        """Show the state of the count in the table and below the areas."""
        self.table.set_state(state_of(self.model.table_state()))
        self.state.show_state(state_of(self.model.count_state(), self._count))

    def _show_account(self) -> None:
        account = self.model.account
        self.table_head.set_note(self.model.table_note())
        if account is None:
            self.map.show_areas(Area("", "", 0), self.model.map_words())
            self.days.show_days(())
            self.facts.show_facts(())
            self.skew.show_bars(())
            return
        chosen = self.table.current_row()
        colours = colours_of(self)
        colours.fill(self.model.topics_by_size())
        self.table.set_rows(self.model.rows)
        self.table.horizontalHeader().setSectionsClickable(False)
        self.table.set_state(state_of(self.model.table_state()))
        self.days.show_days(day_bars(account, colours.order), self.model.days_words())
        self._show_areas()
        if self.model.pending_topic:
            self._choose_pending()
        elif chosen is not None:
            self._choose_row(chosen.key)
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_forecast(self) -> None:
        forecast, account = self.model.forecast, self.model.account
        if forecast is None:
            words = tr("Looking at the files …") if self.session else ""
            self.line.show_files(LogLine(0, 0, 0), (), (), self.model.forecast_error or words)
            self.retention_head.set_note("")
            self.retention.setText(self.model.forecast_error)
            self.cache.setText("")
            return
        retention = forecast.retention
        unread = self.session.unread if self.session is not None else None
        blocks = blocks_of(retention, forecast.cache, account, forecast=not unread)
        files = tuple(LineFile(block.name, block.start, block.end) for block in blocks)
        start_offset, end_offset = (files[0].start, files[-1].end) if files else (0, 0)
        self.line.show_files(
            LogLine(start_offset, end_offset, end_offset, files),
            blocks,
            flags_of(retention, account) if not unread else (),
            (self.session and self.session.undecoded_log) or tr("The log has no files."),
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
        self.model.group_by(self.group.key, self.measure.key)  # type: ignore[arg-type]
        if self.model.account is not None:
            self._show_areas()

    def _show_areas(self) -> None:
        self.map.show_areas(self.model.root, self.model.map_words())
        self._show_facts(self.map.path)

    def _show_facts(self, path: tuple[str, ...]) -> None:
        if self.model.account is None:
            return
        self.facts.show_facts(self.model.facts(path))
        topic, bars = self.model.queue_bars(path)
        self.skew.show_bars(bars, topic)

    def _bar(self, row: SpaceRow) -> tuple[str, float] | None:
        share = self.model.share_of_largest_topic(row)
        return (row.key, share) if share is not None else None

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def _choose_pending(self) -> None:
        topic = self.model.take_pending_topic()
        if topic and self.model.area((topic,)) is not None:
            self.map.choose((topic,))
            self._show_facts((topic,))
        self._choose_row(topic)

    def _choose_row(self, key: str) -> None:
        index = self.model.index_of(key)
        current = self.table.current_row()
        if index is not None and (current is None or current.key != key):
            self.table.go_to(index)

    def _area_chosen(self, path: tuple[str, ...]) -> None:
        self._show_facts(path)
        key = self.model.key_of_area(path)
        if key is not None:
            self._choose_row(key)
            self.placeMoved.emit(place_of_key(key))

    def _row_chosen(self, row: SpaceRow | None) -> None:
        path = self.model.path_of_row(row)
        if row is None or path is None or (path and self.map.path[:1] == path):
            return
        self.map.choose(path)
        self._show_facts(path)
        self.placeMoved.emit(Place("space", name=(row.topic or "") if path else ""))

    def _follow(self, path: tuple[str, ...]) -> None:
        area = self.model.area(path)
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
            self.statusMessage.emit(engine_words(str(error)))
            return
        if session is self.session:
            self.placeRequested.emit(place)

    def _file_chosen(self, block: Block) -> None:
        self.file.show_file(block.name)
        self.statusMessage.emit(block.words.replace("\n", " · "))
