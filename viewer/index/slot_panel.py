"""The load of an index file's slots: heat map and chain lengths, counted by a job when somebody looks."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from engine.errors import StoreError
from engine.inspection.slot_load import SlotLoad
from viewer.index.facts import slot_load
from viewer.index.slot_map import CELLS, ChainHistogram, SlotMap
from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.runtime import places
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.store_session import StoreSession
from viewer.widgets.basics import Label, PaneHead, Paper

MOST_HELD = 8
"""Files whose load is kept."""
GROWN = 256
"""Entries (or a fiftieth, if that is more) by which a file may grow before its slots are counted again."""


class SlotPanel(Paper):
    """``slotChosen(slot)`` when a cell of the map is chosen."""

    slotChosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._session: StoreSession | None = None
        self._file = ""
        self._asked = ""
        self._loads: dict[str, SlotLoad] = {}
        self._count = -1
        self._slot: int | None = None
        self._length: int | None = None
        self._used = Label("", 12, "text3")
        self._head = PaneHead(tr("Slots"), "", self._used)
        self._bars_head = PaneHead(tr("Chain length"), tr("slots by the number of their entries"))
        self.map, self.bars = SlotMap(), ChainHistogram()
        self.map.slot_chosen.connect(self.slotChosen)
        self.map.link_of = lambda file, slot: places.index(file, "slot", slot)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        for part, stretch in ((self._head, 0), (self.map, 3), (self._bars_head, 0), (self.bars, 2)):
            box.addWidget(part, stretch)
        self.setMinimumWidth(px(320))

    def set_session(self, session: StoreSession | None) -> None:
        """Another store: what was counted is forgotten."""
        self._session = session
        self._loads.clear()
        self._asked = ""
        self.show_file("", -1)

    def show_file(self, name: str, count: int) -> None:
        """The slots of another file with ``count`` entries; counted now where that is not known yet."""
        if name != self._file:
            self._slot = self._length = None
        self._file, self._count = name, count
        self._head.set_title(tr("Slots of {file}", file=name) if name else tr("Slots"))
        load = self._loads.get(name)
        self._show(load, "" if not name else tr("counting the entries of every slot …"))
        known = load is not None and abs(count - load.entries) <= max(GROWN, load.entries // 50)
        if not known and name and self._session is not None and self._asked != name:
            self._asked = name
            self._session.jobs.start(self._count_load(self._session, name))

    def choose(self, slot: int | None, length: int | None) -> None:
        """Ring a slot, with the length of its chain where that is known."""
        self._slot, self._length = slot, length
        self.map.choose(slot, length)
        self.bars.show_load(self._loads.get(self._file), length, self._file)

    def _show(self, load: SlotLoad | None, words: str) -> None:
        self.map.show_load(load, words, self._file)
        self.bars.show_load(load, self._length, self._file)
        if load is None:
            self._used.setText("")
            return
        self.map.choose(self._slot, self._length)
        self._used.setText(tr("{slots:,} slots · {used:,} used", slots=load.slots, used=load.used))
        note = tr("longest {n:,}, slot {slot:,}", n=load.longest, slot=load.longest_slot)
        if not load.complete:
            note = tr("first {n:,} entries only", n=load.entries)
        self._bars_head.set_note(note)

    async def _count_load(self, session: StoreSession, name: str) -> None:
        def work(control: Control) -> SlotLoad | None:
            return slot_load(session.snapshot, name, CELLS, lambda: control.cancelled, control.report)

        words = tr("the numbers of slots and entries of this file are not known")
        load: SlotLoad | None = None
        try:
            load = await session.jobs.run(tr("Counting slots"), work)
        except Cancelled:
            words = tr("stopped")
        except (StoreError, OSError) as error:
            words = str(error)
        if session is not self._session:
            return
        self._asked = ""
        if load is not None:
            while len(self._loads) >= MOST_HELD:
                del self._loads[next(iter(self._loads))]
            self._loads[name] = load
        if name == self._file:
            self._show(load, words)
        elif self._file:
            self.show_file(self._file, self._count)
