"""Every part that paints records, fields or marks has their menu; the exceptions are named here."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable

import pytest
from menu_actions import actions_in
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

import viewer
from engine.inspection.index_reader import SlotLoad
from engine.query import parse
from viewer.index.hash_strip import HashStrip, StripPart
from viewer.index.slot_map import ChainHistogram, SlotMap
from viewer.log.event_lane import EventLane
from viewer.look.theme import theme
from viewer.queues.entry_cells import PER_ROW, ByteField, EntryBytes, EntryCells
from viewer.space.day_bars import DayBar, DayBars
from viewer.widgets.canvas import MarkCanvas
from viewer.widgets.drawn_marks import DrawnMark, entry_mark
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.recovery_line import LineFlag, Part, RecoveryLine
from viewer.widgets.row_commands import MARKS, row_commands_of
from viewer.widgets.skew_bars import SkewBars

NO_MARKS = {
    **dict.fromkeys(
        (
            "basics",
            "word_tabs",
            "status_bar",
            "top_bar",
            "crumbs",
            "rail",
            "_SplitterLine",
            "FocusRing",
            "ReadingText",
            "SeverityChip",
            "row_table",
            "file_dialog",
        ),
        "frames, buttons, icons and words",
    ),
    **dict.fromkeys(("filter_line", "find_line", "palette_box"), "what is typed"),
    "record_state": "a sentence in the place of rows",
    **dict.fromkeys(("live_items", "rates", "stages"), "curves and figures of a moment"),
    **dict.fromkeys(("TimeTrack", "time_histogram"), "the time that is shown"),
    "welcome": "the way into a store: none is open",
    **dict.fromkeys(("Frame", "jump_highlight"), "a hint over the window"),
    "incident_card": "the edge of a card of words",
    **dict.fromkeys(("choices", "CheckList"), "the arrow of a choice and the tick of a box"),
    "power_loss_panel": "the colours of the legend",
    "pair_strip": "both logs as lines; a click goes to their rows, which have the menus",
    "rate_strip": "requests a second; a click goes to their rows, which have the menus",
    "side": "the curve of a minute, and a side column that is folded",
}
"""Modules, or classes of them, whose drawn parts stand for nothing in a store, and what they are."""


ARGUMENTS: dict[type[QWidget], Callable[[], tuple[object, ...]]] = {
    RecoveryLine: lambda: ("part", "Part"),
    MarkCanvas: lambda: ("part", "Part"),
    SkewBars: lambda: ("part",),
    DayBars: lambda: ("part",),
    EventLane: lambda: (LineStrip(),),
}
"""What a part is made with, where that is something."""


def drawn() -> list[type[QWidget]]:
    """Return every class of the viewer that paints itself."""
    results = set()
    for item in pkgutil.walk_packages(viewer.__path__, "viewer."):
        if item.name == "viewer.__main__":
            continue
        module = importlib.import_module(item.name)
        for _, sample in inspect.getmembers(module, inspect.isclass):
            if issubclass(sample, QWidget) and sample.__module__ == item.name and "paintEvent" in vars(sample):
                results.add(sample)
    return sorted(results, key=lambda store: store.__qualname__)


def names_of(widget_class: type[QWidget]) -> set[str]:
    """Return the name of the module and of the class."""
    return {widget_class.__module__.rpartition(".")[2], widget_class.__qualname__}


def has_menu(widget_class: type[QWidget]) -> bool:
    """Return True if the class opens a menu: by a door of its own, or in Qt's own way."""
    classes = [cls for cls in widget_class.__mro__ if cls.__module__.startswith("viewer.")]
    return any(
        "contextMenuEvent" in vars(cls) or "MarkMenu(" in source or "MenuOpener(" in source
        for cls in classes
        for source in [inspect.getsource(cls)]
    )


def test_every_part_that_paints_marks_has_their_menu() -> None:
    bare = [
        f"{sample.__module__}.{sample.__qualname__}"
        for sample in drawn()
        if not NO_MARKS.keys() & names_of(sample) and not has_menu(sample)
    ]
    assert bare == [], "give it a MarkMenu, or say in NO_MARKS what it paints"
    present = set().union(*map(names_of, drawn()))
    assert NO_MARKS.keys() <= present, "nothing is excused that is not there"


def test_every_part_with_a_menu_is_reached_by_key(qtbot) -> None:
    for sample in drawn():
        if issubclass(sample, MarkCanvas):
            part = sample(*ARGUMENTS.get(sample, tuple)())
            qtbot.addWidget(part)
            assert part.focusPolicy() & Qt.FocusPolicy.TabFocus, sample


LOAD = SlotLoad(100, 40, 60, tuple(float(n % 3) for n in range(50)), (60, 30, 7, 3), 3, 17, 0, True)


def entry_bytes() -> EntryBytes:
    new_entry_bytes = EntryBytes()
    fields = (ByteField("physicalOffset", 0, 8, "id", "5"), ByteField("tagsCode", 8, 8, "topic", "7", "is “A”"))
    new_entry_bytes.show_entry(bytes(16), fields, entry_mark("T", 0, 5, "T/0/5", unit=(640, 200, "K1 K2")))
    return new_entry_bytes


def cells() -> EntryCells:
    entry_cells = EntryCells()
    entry_cells.show_entries(
        dict.fromkeys(range(100), "ok"), (0, 100), {3: ("g", "accent")}, ("T", 2), {4: (640, 200, "K1")}
    )
    entry_cells.choose(4)
    return entry_cells


def strip() -> HashStrip:
    new_strip = HashStrip()
    mark = entry_mark("T", 0, 5, "key text T#K")
    new_strip.show_parts([StripPart("key text", "T#K", mark=mark), StripPart("hash", "17", follows=True, mark=mark)])
    return new_strip


def slots() -> SlotMap:
    slot_map = SlotMap(lambda file, slot: f"{file}/{slot}")
    slot_map.show_load(LOAD, "", "2026")
    slot_map.choose(17, 3)
    return slot_map


def lengths() -> ChainHistogram:
    histogram = ChainHistogram()
    histogram.show_load(LOAD, 3, "2026")
    return histogram


def line() -> RecoveryLine:
    recovery_line = RecoveryLine("line", "Line")
    parts = [Part(0.5, "keep", "stays", 0, 1000), Part(0.3, "drop", "goes", 1000, 1500), Part(0.2, "zero")]
    recovery_line.show_parts(parts, [LineFlag(0.5, "end of log", "posLog", 1000)])
    return recovery_line


def days() -> DayBars:
    day_bars = DayBars()
    bars = [DayBar("≤ 2026-11-19", 5, 1, (("A", 5),)), DayBar("2026-11-20", 10, 2, (("A", 10),), "there")]
    day_bars.show_days(bars)
    return day_bars


def skew() -> SkewBars:
    bars = SkewBars("skew")
    bars.show_bars([("0", 10), ("3", 30)], "T")
    return bars


@pytest.fixture
def shown(qtbot):
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    theme.apply(app)

    def show(widget):
        qtbot.addWidget(widget)
        widget.resize(900, max(widget.sizeHint().height(), widget.height()))
        widget.show()
        widget.grab()
        return widget

    return show


def menu_by_key(widget: QWidget) -> QMenu:
    """Press Shift+F10 and return the menu that opens."""
    QTest.keyClick(widget, Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier)
    popup = QApplication.activePopupWidget()
    assert isinstance(popup, QMenu)
    return popup


@pytest.mark.parametrize("make", [entry_bytes, cells, strip, slots, lengths, line, days, skew])
def test_the_menu_comes_by_key_whole_and_every_mark_can_be_asked(shown, make) -> None:
    """A right click on a cell of a queue, a slot or a day did nothing."""
    widget = shown(make())
    actual_mark = widget.mark_at(None)
    assert actual_mark is not None
    menu = menu_by_key(widget)
    named = [
        action.objectName()
        for action in actions_in(menu)
        if action.objectName() and "filter" not in action.objectName()
    ]
    assert named == [command.id for command in row_commands_of(actual_mark[0].facts.kind)]
    menu.close()
    marks: list[DrawnMark] = (
        [mark for _, mark in widget.marks()] if isinstance(widget, MarkCanvas) else [actual_mark[0]]
    )
    for mark in marks:
        assert mark.facts.kind in MARKS
        assert mark.words
        assert mark.facts.term is None or parse(mark.facts.term) is not None
        assert json.loads(json.dumps(mark.record))["value"] == mark.value


def test_the_mark_under_the_pointer_is_used(shown) -> None:
    sample = shown(cells())
    box = sample._cell(PER_ROW + 2)
    hit = sample.mark_at(box.center())[0]
    assert (hit.facts.topic, hit.facts.queue_id, hit.facts.queue_offset) == ("T", 2, PER_ROW + 2)
    assert sample.mark_at(None)[0].facts.offset == 640
    assert sample.mark_at(None)[0].facts.key == "K1"
    recovery = shown(line())
    boxes = [box for _, box in recovery._boxes()]
    half = recovery.mark_at(boxes[0].center())[0]
    assert abs(half.facts.offset - 500) < 10
    assert half.facts.field == "part.keep"
    assert recovery.mark_at(boxes[1].center())[0].facts.term == "physicalOffset >= 1000 and physicalOffset < 1500"
    assert recovery.mark_at(boxes[2].center())[0].facts.offset is None
    assert recovery.mark_at(QPointF(-5, -5)) is None
    assert shown(slots()).mark_at(None)[0].facts.link == "2026/17"
    of_day = shown(days())
    assert of_day.mark_at(None)[0].facts.term == 'storeTimestamp < "2026-11-20"'
    QTest.keyClick(of_day, Qt.Key.Key_Down)
    assert of_day.mark_at(None)[0].facts.link == "there"
    bars = shown(skew())
    assert bars.mark_at(QPointF(800, 20))[0].facts.queue_id == 3


@pytest.mark.parametrize("make", [EntryBytes, EntryCells, HashStrip, SlotMap, ChainHistogram, DayBars])
def test_nothing_is_meant_where_nothing_is_drawn(shown, make) -> None:
    widget = shown(make())
    assert widget.mark_at(None) is None
    assert widget.mark_at(QPointF(50, 10)) is None
