"""The view of two stores on one page: both logs side by side, level where they hold the same message.

This store is A, the other one B. B is opened by this view, read-only, and closed with it. Both are only read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from engine.errors import StoreError
from viewer.compare.difference_tables import KIND, TOTAL, OtherWindowLink, named_sides
from viewer.compare.differences_model import TOTALS, DifferencesModel
from viewer.compare.pair_columns import OTHER, OWN
from viewer.compare.pair_detail import PairDetail
from viewer.compare.pair_model import PairModel
from viewer.compare.pair_rows import PairRow, PairSource
from viewer.compare.pair_strip import BandExtent, PairStrip, StripContent
from viewer.compare.pair_table import PairHeads, PairTable
from viewer.compare.pair_work import config_of, open_as_it_is
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.theme import px, ui
from viewer.pane import Pane
from viewer.pane.table_commands import command_copier, table_commands
from viewer.runtime.jobs import Cancelled
from viewer.runtime.places import Place
from viewer.runtime.unread import UnreadFiles
from viewer.runtime.worker import WorkerDied
from viewer.widgets.basics import Button, Chip, Label, PaneHead, ThemedPanel
from viewer.widgets.boxes import fill, splitter, stacked
from viewer.widgets.choices import ChoiceField
from viewer.widgets.flow import WrappedRow
from viewer.widgets.log_line import TopicMix, line_of, sample, sample_places
from viewer.widgets.record_state import State, state_of
from viewer.widgets.record_view import RecordView
from viewer.widgets.word_tabs import WordTabs

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.compare.pair_model import ComparedStores
    from viewer.runtime.store_session import StoreSession

COMPARE = "viewer.compare.pair_work:compare_paths"
MIN_DECK_PX = 110
"""Height at 100 % that the bytes keep in a small window: one of both sides."""
SAMPLES = 96
SAMPLES_AT_ONCE = 16


class ComparePane(Pane):
    """Both logs, where they differ, the chosen pair in bytes, and all other differences as tables."""

    wants_tree = False
    otherStoreRequested = Signal()
    """Ask for the store to compare with."""
    besideRequested = Signal(str, str)
    """Show a place of a store, given by its path, in another window."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("pair.pane")
        self.model = PairModel()
        self.lists = DifferencesModel()
        self._other: StoreSnapshot | None = None
        self._other_unread: UnreadFiles | None = None
        self._comparing: asyncio.Task[Any] | None = None
        self._generation = 0
        self.strip = PairStrip()
        self.table = PairTable(self._read)
        self.table.setMinimumHeight(px(80))
        self.heads = PairHeads(self.table)
        self.detail = PairDetail()
        self.banner = self._banner()
        self.deck = self._deck()
        upper = stacked(self.heads, self.table, self.table.strip, room=1)
        self.split = splitter(True, (upper, 430), (self.deck, 340))
        self.split.setObjectName("pair.split")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.banner)
        layout.addWidget(self.strip)
        layout.addWidget(self.split, 1)
        self.lead = self.table
        self.table.rowChosen.connect(self._chosen)
        self.table.moved.connect(self.strip.set_frame)
        self.table.placeRequested.connect(self.placeRequested)
        self.table.failed.connect(lambda error: self.table.set_state(State("error", str(error))))
        self.strip.positionChosen.connect(self.go_to)
        self._show_all()

    def _banner(self) -> ThemedPanel:
        """The line on top: how the stores compare, how many differences, and the way to the next one."""
        banner = ThemedPanel("pane", ("bottom",))
        line = WrappedRow(gap=10, line_gap=0, line_height=39)
        banner.setLayout(line)
        line.setContentsMargins(px(12), 0, px(8), 1)
        self.title = Label(tr("Two stores"), 13, "text", 600)
        self.chips = {side: Chip(kind, "") for side, kind in (("differs", "error"), (OWN, "warn"), (OTHER, "warn"))}
        self.place = Label("", 12, "text2")
        self.place.setObjectName("pair.place")
        self.previous, self.next = Button(tr("Previous difference")), Button(tr("Next difference"))
        self.previous.setToolTip("F7")
        self.next.setToolTip("F8")
        self.other, self.again, self.stop = (
            Button(tr("Choose the other store…")),
            Button(tr("Compare again")),
            Button(tr("Stop")),
        )
        for name in ("previous", "next", "other", "again", "stop"):
            getattr(self, name).setObjectName(f"pair.{name}")
        self.previous.clicked.connect(lambda: self.step(-1))
        self.next.clicked.connect(lambda: self.step(1))
        self.other.clicked.connect(self.otherStoreRequested)
        self.again.clicked.connect(self.compare_again)
        self.stop.clicked.connect(self.cancel)
        parts = (self.title, *self.chips.values(), self.place, self.previous, self.next, self.stop, self.again)
        fill(line, (*parts, self.other))
        return banner

    def _deck(self) -> QWidget:
        """Below the table: the bytes of the chosen pair, sums by topic and queue, all differences."""
        self.tabs = WordTabs(
            "pair.tabs",
            (
                ("bytes", tr("Bytes")),
                ("totals", tr("By topic and queue")),
                ("all", tr("All differences")),
            ),
        )
        self.deck_head = PaneHead(tr("The chosen messages"), "", self.tabs)
        self.totals = RecordView("pair.totals", named_sides(TOTAL))
        self.totals.setAccessibleName(tr("Units by topic and queue"))
        self.kinds = ChoiceField()
        self.kinds.setObjectName("pair.kind")
        self.kinds.setAccessibleName(tr("Which differences are shown"))
        self.kinds.setFont(ui(12))
        self.kinds.setSizeAdjustPolicy(ChoiceField.SizeAdjustPolicy.AdjustToContents)  # counts come after comparing
        self.kinds.currentIndexChanged.connect(lambda _n: self._choose_kind())
        self.list = RecordView("pair.list", named_sides(KIND))
        self.list.setAccessibleName(tr("Differences of two stores"))
        for table in (self.totals, self.list):
            table.placeRequested.connect(self.follow)
        list_line = ThemedPanel("pane", ("bottom",))
        line = WrappedRow(gap=10, line_gap=0, line_height=34)
        list_line.setLayout(line)
        line.setContentsMargins(px(12), 0, px(8), 1)
        fill(line, (self.kinds,))
        self.pages = QStackedWidget()
        self.pages.addWidget(self.detail)
        self.pages.addWidget(stacked(self.totals, self.totals.strip, room=0))
        self.pages.addWidget(stacked(list_line, self.list, self.list.strip, room=1))
        self.pages.setMinimumHeight(px(MIN_DECK_PX))
        self.tabs.chosen.connect(self._tab_chosen)
        return stacked(self.deck_head, self.pages, room=1)

    def _tab_chosen(self, key: str) -> None:
        self.pages.setCurrentIndex(("bytes", "totals", "all").index(key))
        titles = {"bytes": tr("The chosen messages"), "totals": tr("Messages that differ"), "all": tr("Differences")}
        self.deck_head.set_title(titles[key])

    # ---- what the window calls ---------------------------------------------------------------------------------------

    def set_session(self, session: StoreSession | None) -> None:
        """Show another store; the store to compare with has to be chosen again."""
        super().set_session(session)
        self._close_other()
        self.model.choose("")
        copier = None if session is None else command_copier(self.table, session.command_line)
        self.table.copier = copier
        self._show_all()

    def show_place(self, place: Place) -> None:
        """Compare with the store that the place names; without a name the last one stays."""
        if self.session is None or not place.name or place.name == self.model.path:
            return
        self.compare_with(place.name)

    def compare_with(self, path: str) -> None:
        """Open the other store and compare both."""
        session = self.session
        if session is None:
            return
        self._close_other()
        self.model.choose(path)
        self._show_all()
        session.jobs.start(self._open_other(session, path, self._generation))

    def compare_again(self) -> None:
        """Compare both stores as they are now."""
        if self.model.path:
            self.compare_with(self.model.path)

    def cancel(self) -> None:
        """Stop comparing. The rows stay."""
        if self._comparing is not None:
            self._comparing.cancel()

    def refresh(self) -> None:
        """Read the rows again. What differs is not compared again by itself: that may take long."""
        if self.session is not None and self._other is not None:
            self.table.reload()
            self._show_words()

    def retheme(self) -> None:
        """Apply fonts and colours."""
        for table in (self.table, self.totals, self.list, self.detail.fields):
            table.refresh_look()

    def status(self) -> str:
        """Return how the stores compare."""
        session = self.session
        if session is None:
            return ""
        unread = (session.unread, self._other_unread)
        text = self.model.sentence(is_complete=not any(unread))
        for files in unread:
            text = files.beside(text) if files is not None and text else text
        return text

    def busy(self) -> bool:
        """True while the stores are compared."""
        return self.model.is_running

    def focus_stops(self) -> Sequence[QWidget]:
        """Return the parts between which F6 moves the focus."""
        deck = {
            "bytes": (self.detail.hex[OWN], self.detail.hex[OTHER], self.detail.fields),
            "totals": (self.totals,),
            "all": (self.kinds, self.list),
        }
        return self.strip, self.table, self.tabs, *deck[self.tabs.key]

    def commands(self) -> dict[str, Callable[[], object]]:
        """Return the commands for the differences, and those for copying."""
        commands = table_commands(self, self._table_in_front, "differences.jsonl")
        in_list = self._table_in_front() is not self.table
        steps: dict[str, Callable[[], object]] = {
            "compare.next": lambda: self.step(1),
            "compare.previous": lambda: self.step(-1),
            "compare.table": self.show_list,
            "go.first": self.table.first_row,
            "go.last": self.table.last_row,
        }
        if not in_list:
            steps |= {"list.next": steps["compare.next"], "list.previous": steps["compare.previous"]}
        return commands | steps

    def _table_in_front(self) -> RecordView:
        lists = (self.totals, self.list, self.detail.fields)
        return next((table for table in lists if table.hasFocus()), self.table)

    # ---- both stores -------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        if self.session is not None:
            self.session.jobs.read(work, done, failed)

    async def _open_other(self, session: StoreSession, path: str, generation: int) -> None:
        def work() -> tuple[StoreSnapshot, bool]:
            from engine.inspection.store_differences import share_offsets  # numpy: not before the first rows

            other_store = open_as_it_is(Path(path), config_of(session.path, Path(path), session.config))
            try:
                return other_store, share_offsets(session.snapshot, other_store)
            except BaseException:
                other_store.close()
                raise

        try:
            other_store, has_shared_offsets = await session.jobs.quick(work)
        except (StoreError, OSError) as error:
            if generation == self._generation:
                self.model.fail(str(error))
                self._show_all()
            return
        if generation != self._generation or session is not self.session:
            other_store.close()
            return
        self._other = other_store
        self._other_unread = UnreadFiles(other_store.path, self)
        self._other_unread.note(other_store.unread)
        if has_shared_offsets:
            self.table.set_source(PairSource(session.snapshot, other_store), choose=True)
        else:
            self.table.set_state(State("loading", tr("Putting the messages of both logs side by side…")))
        self._show_words()
        self._draw()
        session.jobs.start(self._sample(session, other_store, generation))
        self._comparing = session.jobs.start(self._compare(session, other_store, generation))

    async def _compare(self, session: StoreSession, other_store: StoreSnapshot, generation: int) -> None:
        if not self.model.begin():
            return
        self._show_words()

        comparison, error = None, ""
        title = tr("Comparing two stores")
        try:
            comparison = await session.jobs.in_worker(
                title, COMPARE, session.path, session.config, Path(self.model.path)
            )
        except (Cancelled, asyncio.CancelledError):
            pass
        except (StoreError, OSError, WorkerDied, RuntimeError) as failure:
            error = str(failure)
        if generation != self._generation or session is not self.session:
            return
        self.model.end(comparison, error=error)
        if self._other_unread is not None:
            self._other_unread.note(other_store.unread)
        self._take(session, other_store, comparison)

    def _take(self, session: StoreSession, other_store: StoreSnapshot, comparison: ComparedStores | None) -> None:
        """Show what comparing gave; rows are put level by message only now."""
        has_rows = isinstance(self.table.source, PairSource)
        if not has_rows or (comparison is not None and comparison.tail is not None):
            tail = comparison.tail if comparison is not None else None
            source = PairSource(session.snapshot, other_store, tail)
            self.table.set_state(None)
            self.table.set_source(source, choose=True)
        self._draw()
        self._show_words()
        self._fill_lists()

    def _close_other(self) -> None:
        self._generation += 1
        self.cancel()
        self.model.is_running = False
        self.table.set_rows([])
        self.table.set_state(None)
        self.detail.clear()
        if self._other is not None:
            self._other.close()
        self._other = self._other_unread = None

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def _show_all(self) -> None:
        self._show_words()
        self._draw()
        self._fill_lists()

    def _show_words(self) -> None:
        """Update banner, heads, and the sentence of an empty table."""
        model, session = self.model, self.session
        has_other = self._other is not None
        counts = model.counts()
        for side, chip in self.chips.items():
            chip.setVisible(side in counts)
            if side in counts:
                chip.set_chip("error" if side == "differs" else "warn", _count_words(side, counts[side]))
        self.place.setText(model.place_words(self._position()))
        for button in (self.previous, self.next):
            button.setEnabled(bool(len(model.spans)))
            button.setVisible(has_other)
        self.stop.setVisible(model.is_running)
        self.again.setVisible(has_other and not model.is_running)
        is_patched = session is not None and bool(session.patches)
        patched, as_it_is = ("live", tr("as patched")), ("chat", tr("as it is"))
        self.heads.show_store(OWN, session.title if session is not None else "", *(patched if is_patched else ("", "")))
        other_path = str(self._other.path) if self._other is not None else model.path
        is_same_store = is_patched and session is not None and other_path == str(session.path)
        self.heads.show_store(OTHER, other_path, *(as_it_is if is_same_store else ("", "")))
        if not has_other and session is not None:
            if model.error:
                text = tr("{path} cannot be shown: {why}", path=model.path, why=engine_words(model.error))
                self.table.set_state(State("error", text))
            elif not model.path:
                text = tr(
                    "No other store is chosen. Master and slave, a backup and now, or a store and its copy are shown "
                    "side by side."
                )
                self.table.set_state(State("hint", text))
            else:
                self.table.set_state(State("loading", tr("Opening {path}", path=model.path)))
        elif has_other and isinstance(self.table.source, PairSource):
            self.table.set_state(self._strip_state())
        self.statusMessage.emit(self.status())

    def _strip_state(self) -> State | None:
        """The text of the line below the rows."""
        model = self.model
        again = ((tr("Compare again"), self.compare_again),)
        if model.error or model.is_stopped:
            return State("cut", model.sentence(is_complete=False), steps=again)
        if model.comparison is not None and self.session is not None and self._other is not None:
            ends = (self.session.snapshot.log.known_end, self._other.log.known_end)
            if any(end is not None and end != then for end, then in zip(ends, model.comparison.ends, strict=True)):
                return State("stale", tr("The logs have changed since they were compared."), steps=again)
            if model.comparison.is_too_long:
                return State("note", model.sentence(is_complete=True))
        return None

    def _draw(self) -> None:
        """Draw the strip."""
        session, other_store, model = self.session, self._other, self.model
        if session is None or other_store is None:
            self.strip.show_content(StripContent())
            return
        comparison = model.comparison
        tail = comparison.tail if comparison is not None else None
        content = StripContent(is_compared=comparison is not None)
        starts, ends = [], []
        compared_ends = comparison.ends if comparison is not None else (None, None)
        stores = ((OWN, session.snapshot), (OTHER, other_store))
        for (side, store), compared_end in zip(stores, compared_ends, strict=True):
            extents = [(file.start_offset, file.end_offset) for file in store.log.files]
            known_end = store.log.known_end if store.log.known_end is not None else compared_end
            end = known_end if known_end is not None else store.log.end_offset
            start = max(store.log.min_offset, 0)
            stop = min(end, tail.start) if tail is not None else end
            parts = [(max(first, start), min(last, stop)) for first, last in extents if first < stop]
            if tail is not None:
                parts.append((tail.start, tail.end))
            content.bands[side] = BandExtent(tuple(parts), tuple(first for first, _ in extents[1:] if first < stop))
            if extents:
                starts.append(start)
                ends.append(end)
        if starts:
            content.low = min(starts)
            content.high = tail.end if tail is not None else max(ends)
        if tail is not None:
            content.low, content.fork = min(content.low, tail.start), tail.start
        if comparison is not None:
            content.spans, content.drawn, content.heads = comparison.spans, comparison.drawn, comparison.heads
        self.strip.show_content(content)

    async def _sample(self, session: StoreSession, other_store: StoreSnapshot, generation: int) -> None:
        """Draw the topics of both logs, a few samples at a time."""
        for side, store in ((OWN, session.snapshot), (OTHER, other_store)):
            try:
                places = await session.jobs.quick(partial(_sample_places, store))
                for number in range(0, len(places), SAMPLES_AT_ONCE):
                    chosen = places[number : number + SAMPLES_AT_ONCE]
                    mixes = await session.jobs.quick(partial(_samples, store, chosen))
                    if generation != self._generation:
                        return
                    self.strip.add_mixes(side, mixes)
            except (StoreError, OSError):
                return

    def _fill_lists(self) -> None:
        comparison = self.model.comparison
        self.lists.differences = comparison.differences if comparison is not None else None
        self.lists.running, self.lists.is_stopped = self.model.is_running, self.model.is_stopped
        self.lists.error = self.model.error
        self.kinds.blockSignals(True)
        self.kinds.clear()
        for key, text in self.lists.kinds():
            if key != TOTALS:
                self.kinds.addItem(text, key)
        self.kinds.setCurrentIndex(max(0, self.kinds.findData(self.lists.kind)))
        self.kinds.blockSignals(False)
        self.totals.set_rows(list(self.lists.totals))
        nothing = State("empty", tr("No message differs.")) if comparison is not None else None
        hint = State("hint", tr("Nothing was compared yet."))
        self.totals.set_state(None if self.lists.totals else nothing or hint)
        self._fill_list()

    def _choose_kind(self) -> None:
        self.lists.kind = self.kinds.currentData() or "all"
        self._fill_list()

    def _fill_list(self) -> None:
        self.list.set_rows(self.lists.rows)
        self.list.set_state(state_of(self.lists.table_state()))

    def show_list(self) -> None:
        """Show all differences as a table."""
        self.tabs.choose("all")
        self.list.setFocus()

    # ---- places ------------------------------------------------------------------------------------------------------

    def _position(self) -> int | None:
        row = self.table.current_row()
        return row.position if isinstance(row, PairRow) else None

    def go_to(self, position: int) -> None:
        """Choose the row at a position."""
        if isinstance(self.table.source, PairSource):
            self.table.go_to(position)

    def step(self, direction: int) -> None:
        """Go to the next (1) or previous (-1) difference of the logs."""
        if self.model.is_running:
            self.statusMessage.emit(tr("The stores are still being compared."))
            return
        number = self.model.spans.step(direction, self._position())
        if number is None:
            text = tr("No further difference.") if direction > 0 else tr("No earlier difference.")
            self.statusMessage.emit(text)
            return
        self.go_to(self.model.spans.spans[number].start)

    def _chosen(self, row: object) -> None:
        session, other_store = self.session, self._other
        self.place.setText(self.model.place_words(self._position()))
        if not isinstance(row, PairRow) or session is None or other_store is None:
            self.detail.clear()
            return
        if row.own is not None:
            session.select(row.own.offset)
        self.detail.show_pair(session, other_store, row)

    def follow(self, link: object) -> None:
        """Follow a link of the tables: to the row here, to another view of this store, or to the other store."""
        is_other = isinstance(link, OtherWindowLink)
        place = link.place if isinstance(link, OtherWindowLink) else link
        if not isinstance(place, Place):
            return
        if place.kind == "log" and place.offset is not None and isinstance(self.table.source, PairSource):
            position = self.table.source.position_of_offset(place.offset, is_other=is_other)
            if position is not None:
                self.go_to(position)
                self.table.setFocus()
                return
        if is_other:
            from viewer.runtime.places import text_of

            self.besideRequested.emit(self.model.path, text_of(place))
        else:
            self.placeRequested.emit(place)


def _count_words(side: str, count: int) -> str:
    if side == "differs":
        return tr_plural("{n:,} differs", "{n:,} differ", n=count)
    return tr("{n:,} only in A", n=count) if side == OWN else tr("{n:,} only in B", n=count)


def _sample_places(store: StoreSnapshot) -> list[tuple[int, int]]:
    return sample_places(line_of(store.log), SAMPLES)


def _samples(store: StoreSnapshot, places: Sequence[tuple[int, int]]) -> list[TopicMix]:
    return [sample(store.log, start, end) for start, end in places]
