"""Space: every byte of the directory by topic, queue and day; what retention deletes next and what holds it."""

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
from viewer.space.areas import GROUPINGS, MEASURES, REST, area_of
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
from viewer.widgets.basics import Button, Hairline, Label, PaneHead, Paper, WordTabs, column, splitter, stacked
from viewer.widgets.facts import Facts
from viewer.widgets.log_line import LineFile, LogLine
from viewer.widgets.record_state import State, StateLine
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import BarPainter
from viewer.widgets.skew_bars import SkewBars
from viewer.widgets.treemap import Treemap

if TYPE_CHECKING:
    from engine.inspection.space.account import Space
    from viewer.runtime.store_session import StoreSession
    from viewer.space.work import Around

AGAIN_BELOW_MS, AGAIN_BELOW = 1500, 256 << 20
"""An account that took no longer, or of a log with no more bytes on the disk, is made again as the store grows; a
longer one waits to be asked for.
"""
PAUSE_MS = 3000
WORK = "viewer.space.work"
CACHE = "space"
"""Folder of the cache for what was counted of finished files."""


class SpacePane(Pane):
    """The view of the bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("space.pane")
        self._account: Space | None = None
        self._around: Around | None = None
        self._root = Area("", "", 0)
        self._wanted = ""
        self._rows: list[SpaceRow] = []
        self._most = 1
        self._running = self._asked = False
        self._again = QTimer(self, interval=PAUSE_MS, singleShot=True)
        self._again.timeout.connect(self._look_again)
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
        left = stacked(self.line, self.file, self.head, self.map, self.state, room=3)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter(False, (left, 720), (self._build_side(), 560)))

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
        self.skew = SkewBars("space.skew")
        self.skew.link_of = places.queue
        self.retention_head = PaneHead(tr("Retention"))
        self.retention = Label("", 12, "text2", wrap=True, select=True)
        self.retention.setObjectName("space.retention")
        self.cache = Label("", 12, "text2", wrap=True, select=True)
        self.cache.setObjectName("space.cache")
        below = Paper()
        box = QVBoxLayout(below)
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
        scroll.setWidget(below)
        side = splitter(True, (stacked(self.table_head, self.table, self.table.strip), 450), (scroll, 430))
        side.setMinimumWidth(px(400))
        return side

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store, or none; counting begins when somebody looks."""
        super().set_session(session)
        self._account = self._around = None
        self._running = self._asked = False
        self._again.stop()
        self.table.copier = None if session is None else command_copier(self.table, str(session.path))
        self.table.set_rows([])
        self.table.set_state(None if session is None else State("loading", tr("Counting the bytes of every file …")))
        self.state.show_state(None)
        self.file.set_session(session)
        self.map.choose(())
        self._show_account()
        self._show_around()
        if session is not None:
            session.findingsChanged.connect(self._show_broken)
        if session is not None and self.isVisible():
            self._begin()

    def show_place(self, place: Place) -> None:
        """The view as a whole, or one topic of it."""
        self._wanted = place.name
        self._begin()
        if self._account is not None:
            self._choose_wanted()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A narrow table leaves two columns out: names and sums stay readable."""
        if watched is self.table and event.type() == QEvent.Type.Resize:
            kind = SLIM if self.table.width() < px(NARROW) else SPACE
            if kind is not self.table.kind:
                self.table.set_kind(kind)
        return False

    def showEvent(self, event: QShowEvent) -> None:
        """What nobody looked at was not counted."""
        super().showEvent(event)
        self._begin()

    def refresh(self) -> None:
        """The store has grown, or look again was asked."""
        if self._account is None or self._running or self.session is None:
            return
        if not self._again.isActive():  # a store that grows all the time is looked at all the same
            self._again.start()
        if not _is_quick(self._account):
            words = tr("As of {time}; the store has grown since.", time=clock(self._account.at)[:8])
            self.state.show_state(State("stale", words, steps=((tr("Look again"), self._count),)))

    def retheme(self) -> None:
        """Fonts and colours."""
        self.table.refresh_look()

    def busy(self) -> bool:
        """Whether the first answer is still awaited."""
        return self._running and self._account is None

    def status(self) -> str:
        """What is accounted for, and how."""
        if self._account is None or self.session is None:
            return ""
        return self.session.unread.beside(status_words(self._account, whole=not self.session.unread))

    def commands(self) -> dict[str, Callable[[], object]]:
        """Copying, exporting and stepping act on the table."""
        return table_commands(self, lambda: self.table, "space.jsonl")

    # ---- counting ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.session is not None and not self._asked and self.isVisible():
            self._asked = True
            self.session.jobs.start(self._ask_around(self.session))
            self._count()

    def _count(self) -> None:
        session = self.session
        if session is not None and not self._running:
            self._running = True
            session.jobs.start(self._work(session, quick=self._account is None))

    def _look_again(self) -> None:
        session = self.session
        if session is None or not self.isVisible() or self._account is None:
            return
        if _is_quick(self._account):
            self._count()
        session.jobs.start(self._ask_around(session))

    async def _work(self, session: StoreSession, *, quick: bool) -> None:
        def came(found: Any) -> None:
            if session is self.session:
                self._take(found)

        try:
            found = await session.jobs.in_worker(
                tr("Counting bytes"),
                f"{WORK}:account",
                session.path,
                session.config,
                quick,
                default_cache() / CACHE,
                on_items=came,
            )
        except Cancelled:
            found = None
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            if session is self.session:
                self._running = False
                self.table.set_state(State("error", engine_words(str(error))))
                self.map.show_areas(Area("", "", 0), engine_words(str(error)))
            return
        if session is not self.session:
            return
        self._running = False
        if found is not None:
            self._take(found)
        if found is None or found.how == "cut":
            words = tr("Stopped. The rest of the log was not looked at.")
            self.state.show_state(State("cut", words, steps=((tr("Go on"), self._count),)))
        else:
            self.state.show_state(None)

    async def _ask_around(self, session: StoreSession) -> None:
        def came(found: Around) -> None:
            if session is self.session and self._around is None:
                self._take(found)

        try:
            found = await session.jobs.in_worker(
                tr("Looking at retention"), f"{WORK}:around", session.path, session.config, on_items=came
            )
        except Cancelled:
            return
        except (StoreError, OSError, WorkerDied, RuntimeError) as error:
            if session is self.session and self._around is None:
                self.line.show_files(LogLine(0, 0, 0), (), (), engine_words(str(error)))
                self.retention.setText(engine_words(str(error)))
            return
        if session is self.session:
            self._take(found)

    def _take(self, found: Any) -> None:
        """Something came from the worker: the surroundings, or an account."""
        if hasattr(found, "retention"):
            self._around = found
        else:
            self._account = found
            self._show_account()
        self._show_around()

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show_account(self) -> None:
        found = self._account
        if found is None:
            self.map.show_areas(Area("", "", 0), tr("Counting the bytes of every file …") if self.session else "")
            self.table_head.set_note("")
            self.days.show_days(())
            self.facts.show_facts(())
            self.skew.show_bars(())
            return
        chosen = self.table.current_row()
        rows = self._rows = space_rows(found)
        self._most = max((row.log for row in rows if row.kind == "topic"), default=1) or 1
        colours = colours_of(self)
        colours.fill([row.key for row in sorted(rows, key=lambda row: -row.log) if row.kind == "topic"])
        self.table.set_rows(rows)
        self.table.horizontalHeader().setSectionsClickable(False)
        self.table.set_state(None)
        note = tr(
            "{size} in {n:,} files, {allocated} allocated",
            size=size(found.bytes),
            n=found.file_count,
            allocated=size(found.allocated),
        )
        self.table_head.set_note(note + " · " + tr("most bytes first, queue files too"))
        waiting = tr("The days are known when the log was walked.") if found.how in {"queues", "sampled"} else ""
        self.days.show_days(day_bars(found, colours.order), waiting or tr("The log holds no message."))
        self._regroup()
        if self._wanted:
            self._choose_wanted()
        elif chosen is not None:
            self._choose_row(chosen.key)
        if self.isVisible():
            self.statusMessage.emit(self.status())

    def _show_around(self) -> None:
        around = self._around
        if around is None:
            self.line.show_files(LogLine(0, 0, 0), (), (), tr("Looking at the files …") if self.session else "")
            self.retention_head.set_note("")
            self.retention.setText("")
            self.cache.setText("")
            return
        found = around.retention
        unread = self.session.unread if self.session is not None else None
        blocks = blocks_of(found, around.cache, self._account, forecast=not unread)
        files = tuple(LineFile(block.name, block.start, block.end) for block in blocks)
        low, high = (files[0].start, files[-1].end) if files else (0, 0)
        self.line.show_files(
            LogLine(low, high, high, files),
            blocks,
            flags_of(found, self._account) if not unread else (),
            tr("The log has no files."),
        )
        self._show_broken()
        self.retention_head.set_note(retention_note(found))
        if unread:
            self.retention.setText(unread.beside(tr("What goes next and who still reads there is not known")))
        else:
            self.retention.setText(" ".join(retention_sentences(found)))
        self.cache.setText(cache_words(around.cache))

    def _show_broken(self) -> None:
        if self.session is not None:
            self.line.show_broken(self.session.broken)

    def _regroup(self) -> None:
        found = self._account
        if found is None:
            return
        self._root = area_of(found, self.group.key, self.measure.key)  # type: ignore[arg-type]
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
        return (row.key, row.log / self._most) if row.kind == "topic" else None

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def _choose_wanted(self) -> None:
        wanted, self._wanted = self._wanted, ""
        if wanted and find(self._root, (wanted,)) is not None:
            self.map.choose((wanted,))
            self._show_facts((wanted,))
        self._choose_row(wanted)

    def _choose_row(self, key: str) -> None:
        at = next((number for number, row in enumerate(self._rows) if row.key == key), None)
        current = self.table.current_row()
        if at is not None and (current is None or current.key != key):
            self.table.go_to(at)

    def _area_chosen(self, path: tuple[str, ...]) -> None:
        self._show_facts(path)
        area = find(self._root, path) if path else None
        if area is None:
            return
        key = area.topic or path[0]
        self._choose_row(key)
        self.placeMoved.emit(Place("space", name="" if key.startswith(REST) else key))

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
            self.statusMessage.emit(tr("This area leads nowhere: it is the sum of many."))

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


def _is_quick(found: Space) -> bool:
    """Whether the account may be made again without being asked for."""
    held = sum(kind.allocated for kind in found.kinds if kind.kind == "commitlog")
    return found.took_ms <= AGAIN_BELOW_MS or held <= AGAIN_BELOW
