"""Columns of a table on the screen: sized by the visible rows, folded, dragged, ordered, remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt

from viewer.look.formats import shorten_middle
from viewer.look.theme import C, scale
from viewer.widgets.columns import RecordKind, gutter, number_column, text_column, topic_column
from viewer.widgets.record_table import FOLDED_HEAD
from viewer.widgets.record_view import RecordView
from viewer.widgets.row_painter import breakable
from viewer.widgets.table_columns import (
    BODY,
    NAME,
    SENTENCE,
    WHOLE,
    ColumnWidth,
    SavedColumns,
    apart,
    fitted,
    kept_columns,
)

KIND = RecordKind(
    "unit",
    (
        gutter(),
        number_column("physicalOffset", "Physical offset", 300),
        topic_column(width=40),
        text_column("tags", "Tag", 90),
        text_column("why", "Why", 90),
    ),
)
HEAD = Qt.ItemDataRole.DisplayRole
TIP = Qt.ItemDataRole.ToolTipRole


def row(offset, topic="Orders", tags="", why=""):
    return {"physicalOffset": offset, "topic": topic, "tags": tags, "why": why}


@pytest.fixture
def view(qtbot):
    record_view = RecordView("units.table", KIND)
    qtbot.addWidget(record_view)
    record_view.resize(900, 400)
    record_view.show()
    return record_view


def width(view, key):
    return view.horizontalHeader().sectionSize(section(view, key))


def section(view, key):
    return next(n for n, column in enumerate(view.kind.columns) if column.key == key)


def test_a_column_is_as_wide_as_its_head_and_the_rows_in_sight(view):
    view.set_rows([row(5, "a" * 40, "x", "y") for _ in range(300)])
    assert width(view, "physicalOffset") < 160
    slot = next(item for item in view.slots_on_screen() if item.column.key == "topic")
    assert view.painter.shortened(slot.column, "a" * 40, slot.width) == "a" * 40
    view.set_rows([row(81_604_377_362, "T", "x", "y")])
    assert view.painter.cell_width(KIND.columns[1], None, "81,604,377,362") <= width(view, "physicalOffset")
    assert width(view, "topic") < 120


def test_a_column_without_a_value_folds_and_opens_as_soon_as_one_comes(view):
    rows = [row(n, why="sound") for n in range(1000)]
    rows[700] = row(700, tags="created", why="sound")
    view.set_rows(rows)
    tags = section(view, "tags")
    assert width(view, "tags") == 24
    assert view.model().headerData(tags, Qt.Orientation.Horizontal, HEAD) == FOLDED_HEAD
    assert view.model().headerData(tags, Qt.Orientation.Horizontal, TIP) == "Tag · tags"
    view.verticalScrollBar().setValue(690)
    assert width(view, "tags") > 50
    assert view.model().headerData(tags, Qt.Orientation.Horizontal, HEAD) == "Tag"
    view.verticalScrollBar().setValue(0)
    assert width(view, "tags") > 50, "widths only grow while one scrolls"
    view.replace_row(0, row(0, tags="a tag that is longer than all the others"))
    assert width(view, "tags") > 200


def test_a_table_without_rows_folds_nothing(view):
    view.set_rows([])
    assert view.table.folded == frozenset()
    assert width(view, "tags") >= 40


def test_offsets_stay_whole_where_room_is_short_and_names_stay_different(view):
    topics = [f"orders-of-the-shop-paid-and-sent-to-somewhere-{n:03}" for n in range(20)]
    view.set_rows([row(81_604_377_362, topic, "x", "a sentence that goes on and on and on") for topic in topics])
    view.resize(430, 300)
    column = KIND.columns[section(view, "topic")]
    assert width(view, "physicalOffset") >= view.painter.cell_width(KIND.columns[1], None, "81,604,377,362")
    shown = {view.painter.shortened(column, topic, width(view, "topic")) for topic in topics}
    assert len(shown) == len(topics)
    assert any("…" in item for item in shown)


def test_a_name_that_comes_later_and_would_look_like_another_makes_the_column_wider(view):
    """In tied windows of 640 px two topics were both "C…s": the second one came when the table was scrolled."""
    view.set_rows([row(n, "CartUpdatesOfShop-0123456789-eu", "x", "why " * 20) for n in range(300)])
    view.resize(300, 300)
    column = KIND.columns[section(view, "topic")]
    near = ["CartUpdatesOfShop-0123456789-eu", "CartUpdatesOf-9876543210-eu"]
    view.source.rows[260]["topic"] = near[1]
    view.go_to_row(260)
    view.grab()
    shown = {view.painter.shortened(column, name, width(view, "topic")) for name in near}
    assert len(shown) == 2
    assert all(len(name) >= 8 for name in shown)


def test_long_names_give_way_before_heads_are_cut_where_they_still_differ(view):
    names = [f"g-{n}" + "0123456789" * 6 for n in range(3)]
    view.set_rows([row(5, name, "x", name) for name in names])
    view.resize(round(440 * scale()), 300)
    assert width(view, "physicalOffset") >= view.horizontalHeader().sectionSizeHint(section(view, "physicalOffset"))


def test_system_topics_are_shortened_at_their_start(view):
    column = KIND.columns[section(view, "topic")]
    name = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
    shown = view.painter.shortened(column, name, 160)
    assert shown.startswith("…")
    assert name.endswith(shown[1:])


def test_a_dragged_width_wins_and_is_remembered_and_reset(view, qtbot):
    records = []
    view.fitting.changed.connect(lambda: records.append(view.fitting.kept.record()))
    view.set_rows([row(n, tags="x", why="y") for n in range(50)])
    width_before = width(view, "topic")
    view.horizontalHeader().resizeSection(section(view, "topic"), 333)
    assert records[-1] == {"widths": {"topic": 333}}
    view.set_rows([row(n, "another-topic", tags="x", why="y") for n in range(80)])
    assert width(view, "topic") == 333
    second_view = RecordView("units.table", KIND)
    qtbot.addWidget(second_view)
    second_view.resize(900, 400)
    second_view.fitting.take(records[-1])
    second_view.set_rows([row(n, tags="x", why="y") for n in range(50)])
    assert width(second_view, "topic") == 333
    next(action for action in second_view.fitting.menu(2).actions() if action.objectName() == "columns.reset").trigger()
    assert width(second_view, "topic") == width_before
    assert second_view.fitting.kept.record() == {}


def test_a_hidden_column_stays_hidden_and_comes_back_from_the_menu(view, qtbot):
    view.set_rows([row(n, tags="x", why="y") for n in range(5)])
    actions = {action.objectName(): action for action in view.fitting.menu(section(view, "tags")).actions()}
    assert actions["columns.show.tags"].isChecked()
    actions["columns.hide"].trigger()
    head = view.horizontalHeader()
    assert head.isSectionHidden(section(view, "tags"))
    assert view.fitting.kept.record() == {"hidden": ["tags"]}
    view.set_rows([row(n, tags="longer", why="y") for n in range(80)])
    assert head.isSectionHidden(section(view, "tags"))
    second_view = RecordView("units.table", KIND)
    qtbot.addWidget(second_view)
    second_view.resize(900, 400)
    second_view.fitting.take(view.fitting.kept.record())
    second_view.set_rows([row(n, tags="x", why="y") for n in range(5)])
    assert second_view.horizontalHeader().isSectionHidden(section(view, "tags"))
    actions = {action.objectName(): action for action in view.fitting.menu(-1).actions()}
    assert not actions["columns.show.tags"].isChecked()
    actions["columns.show.tags"].trigger()
    assert not head.isSectionHidden(section(view, "tags"))
    assert view.fitting.kept.record() == {}


def test_the_last_column_cannot_be_hidden(view):
    view.set_rows([row(n, tags="x", why="y") for n in range(5)])
    for name in ("tags", "why", "topic", "physicalOffset"):
        view.fitting.hide(name)
    assert view.fitting.kept.hidden == ["tags", "why", "topic"]
    actions = {action.objectName(): action for action in view.fitting.menu(section(view, "physicalOffset")).actions()}
    assert not actions["columns.hide"].isEnabled()
    assert not actions["columns.show.physicalOffset"].isEnabled()
    view.fitting.reset()
    assert view.fitting.kept.hidden == []
    assert not view.horizontalHeader().isSectionHidden(section(view, "why"))


def test_a_double_click_on_the_edge_fits_what_is_shown(view, qtbot):
    view.set_rows([row(n, "Orders", tags="created", why="y") for n in range(50)])
    head = view.horizontalHeader()
    head.resizeSection(section(view, "tags"), 20)
    point = QPoint(head.sectionViewportPosition(section(view, "tags")) + 19, head.height() // 2)
    qtbot.mouseMove(head.viewport(), point)
    qtbot.mouseDClick(head.viewport(), Qt.MouseButton.LeftButton, pos=point)
    qtbot.mouseRelease(head.viewport(), Qt.MouseButton.LeftButton, pos=point)
    column = KIND.columns[section(view, "tags")]
    assert width(view, "tags") >= view.painter.cell_width(column, None, "created")


def test_moved_columns_stay_where_they_were_put(view, qtbot):
    view.set_rows([row(n, tags="x", why="y") for n in range(5)])
    view.horizontalHeader().moveSection(section(view, "tags"), 1)
    record = view.fitting.kept.record()
    assert record["order"][0] == "tags"
    second_view = RecordView("units.table", KIND)
    qtbot.addWidget(second_view)
    second_view.fitting.take(record)
    second_view.set_rows([row(1, tags="x", why="y")])
    assert [slot.column.key for slot in second_view.slots_on_screen()][:3] == ["", "tags", "physicalOffset"]
    second_view.set_kind(KIND)
    assert [slot.column.key for slot in second_view.slots_on_screen()][:3] == ["", "tags", "physicalOffset"]
    second_view.fitting.reset()
    assert [slot.column.key for slot in second_view.slots_on_screen()][:3] == ["", "physicalOffset", "topic"]


def test_measuring_looks_at_few_rows_however_many_there_are(view, monkeypatch):
    numbers = []
    texts = type(view.table).texts
    monkeypatch.setattr(type(view.table), "texts", lambda table, number: numbers.append(number) or texts(table, number))
    view.set_rows([row(n, tags="x") for n in range(20_000)])
    view.viewport().grab()
    assert len(set(numbers)) <= 220
    numbers.clear()
    view.verticalScrollBar().setValue(10_000)
    assert len(set(numbers)) < 60


def test_the_line_of_the_head_runs_to_the_right_edge(view):
    """Behind the last column too: a table may be wider than its columns are together."""
    view.set_kind(RecordKind("unit", (gutter(), number_column("physicalOffset", "Physical offset", 300))))
    view.set_rows([row(5)])
    head = view.horizontalHeader()
    assert head.length() < head.viewport().width() - 20
    shown, y = head.viewport().grab().toImage(), head.viewport().height() - 1
    line = {shown.pixelColor(x, y).name() for x in range(head.length(), shown.width() - 1)}
    assert line == {C("hair").name()}


def test_long_texts_wrap_in_columns_that_allow_it(view):
    """At 1280 px a finding ended in "…" though there was room below it."""
    sound = KIND.columns
    view.set_kind(RecordKind("unit", (*sound[:-1], replace(sound[-1], wrap=True))))
    text = "Commit log files that are not contiguous, and OrderEvents#" + "7F" * 20
    view.set_rows([row(81_604_377_362, why=text), row(5, why="short")])
    view.resize(420, 400)
    slot = next(slot for slot in view.slots_on_screen() if slot.column.key == "why")
    assert view.lines == view.painter.lines_of(slot.column, text, slot.width) > 1
    assert view.row_height() == view.painter.lines_height(view.lines)
    broken = breakable(text, view.fontMetrics(), slot.width - 16)
    assert broken.replace("\u200b", "") == text
    parts = broken.replace(" ", "\u200b").split("\u200b")
    assert all(view.fontMetrics().horizontalAdvance(part) < slot.width for part in parts)
    view.grab()
    view.set_rows([row(5, why="short")])
    assert view.lines == 1
    assert view.row_height() == round(24 * scale())


def test_one_long_row_does_not_push_the_others_out_of_sight(view):
    """Every row was as high as the longest: of six pieces of evidence three were in sight, each with air around it."""
    view.set_kind(RecordKind("unit", (*KIND.columns[:-1], replace(KIND.columns[-1], wrap=True))))
    view.set_rows([row(n, why="short") for n in range(6)] + [row(7, why="a long sentence " * 20)])
    view.resize(500, 330)
    assert view.row_height() * 7 <= view.viewport().height()
    assert view.lines == 2
    view.resize(500, 700)
    assert view.row_height() * 7 <= view.viewport().height()
    assert view.lines > 3


def test_a_column_that_hides_is_not_there_until_a_value_comes(qtbot):
    hiding = tuple(replace(column, hides=True) if column.key == "tags" else column for column in KIND.columns)
    record_view = RecordView("few.table", replace(KIND, columns=hiding))
    qtbot.addWidget(record_view)
    record_view.resize(900, 400)
    record_view.show()
    record_view.set_rows([row(1, why="sound"), row(2, why="sound")])
    assert record_view.horizontalHeader().isSectionHidden(section(record_view, "tags"))
    record_view.replace_row(0, row(1, tags="created", why="sound"))
    assert width(record_view, "tags") > 40
    assert not record_view.horizontalHeader().isSectionHidden(section(record_view, "tags"))


def test_heads_of_one_short_word_stay_whole_where_room_is_short(qtbot):
    """They stood there as "St…" and "N…" beside a name that had room to give."""
    columns = (
        number_column("step", "Step", 46),
        number_column("number", "Number", 92),
        text_column("key", "Key of the unit", 110, mono=True, elide="middle"),
    )
    record_view = RecordView("steps.table", RecordKind("step", columns))
    qtbot.addWidget(record_view)
    record_view.resize(900, 300)
    record_view.show()
    record_view.set_rows([{"step": n, "number": n, "key": f"Orders#{n:024d}"} for n in range(9)])
    widths = [width(record_view, key) for key in ("step", "number")]
    record_view.resize(230, 300)
    assert [width(record_view, key) for key in ("step", "number")] == widths
    assert width(record_view, "key") < 150


OFFSET, TOPIC, WHY, TEXT = (
    ColumnWidth(120, 120, WHOLE),
    ColumnWidth(200, 80, NAME),
    ColumnWidth(300, 88, SENTENCE),
    ColumnWidth(500, 72, BODY),
)
ALL = [OFFSET, TOPIC, WHY, TEXT]


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        pytest.param(2000, [120, 200, 300, 500], id="room for all"),
        pytest.param(900, [120, 200, 300, 280], id="the body gives way"),
        pytest.param(600, [120, 200, 208, 72], id="then the sentence"),
        pytest.param(450, [120, 170, 88, 72], id="then the name"),
        pytest.param(100, [120, 80, 88, 72], id="the offset never"),
    ],
)
def test_bodies_give_way_before_sentences_and_these_before_names(room, widths):
    assert fitted(ALL, room) == widths


def test_the_longer_of_two_names_is_shortened():
    short, long = ColumnWidth(90, 64, NAME), ColumnWidth(400, 64, NAME)
    assert fitted([short, long], 300) == [90, 210]
    assert fitted([short, long], 160) == [80, 80]


def test_a_very_long_name_gives_way_before_the_heads_of_others():
    head, name = ColumnWidth(140, 60, WHOLE), ColumnWidth(900, 80, NAME, easy=220)
    assert fitted([head, name], 400) == [140, 260]
    assert fitted([head, name], 300) == [80, 220]
    assert fitted([head, name], 200) == [60, 140]


def test_a_head_longer_than_its_figures_gives_way_before_a_name():
    assert fitted([ColumnWidth(140, 60, WHOLE), ColumnWidth(200, 80, NAME, easy=220)], 280) == [80, 200]


def test_names_are_not_cut_to_where_two_of_them_look_alike():
    names = ["orders-of-shop-1-paid-eu", "orders-of-shop-2-paid-eu", "K1"]

    def cut(name, keep):
        return shorten_middle(name, keep)

    width = apart(names, 24, 5, cut, step=1)
    assert len({cut(name, width) for name in names}) == 3
    assert len({cut(name, width - 1) for name in names}) == 2
    assert apart(["a" * 30, "a" * 15 + "b" + "a" * 14], 30, 5, lambda name, _keep: name[:3]) == 30


@pytest.mark.parametrize(
    "value", [None, 5, [], {"widths": [1], "order": "x", "added": {"a": 1}}, {"widths": {"a": "b"}}]
)
def test_invalid_saved_widths_are_ignored(value):
    assert kept_columns(value) == SavedColumns()


def test_saved_columns_are_restored():
    done = SavedColumns({"topic": 240}, ["queueId", "topic"], ["bornHost"], ["tags"])
    assert kept_columns(done.record()) == done
    assert SavedColumns().record() == {}
