"""The menu of a row.

Marks on Lines, boxes and flags have the menu of what they stand for, by mouse and by key.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from many_entries import Entries
from menu_actions import actions_in
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QMenu, QWidget

from engine.inspection.file_map import FileMap, MapCell
from engine.query import parse
from viewer.look.broken import UnreadableRange
from viewer.queues.queue_line import QueueFlag, QueueLine, QueueSpan
from viewer.space.file_strip import FileStrip
from viewer.space.space_line import Block, SpaceLine
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.log_line import LineFile, LinePin, LogLine
from viewer.widgets.record_menu import ExplainBox, add_row_commands, add_terms, build_menu, words_of
from viewer.widgets.row_commands import PARTS_OF, Facts, row_commands_of
from viewer.widgets.ruler import Ruler, RulerFlag, RulerView


@pytest.fixture
def entries(view):
    view.set_source(Entries())
    return view


def test_the_menu_offers_links_copies_and_filters(entries):
    entries.filters = True
    row = entries.table.rows[3]
    menu = build_menu(entries, row, 2)
    assert [a.text() for a in menu.actions() if a.text() and a.isEnabled()][:2] == [
        "Follow the link",
        "Open in a window of its own",
    ]
    assert next(a for a in menu.actions() if a.objectName() == "copy.cell").isEnabled()
    trace = next(a for a in actions_in(menu) if a.objectName() == "follow.trace")
    assert not trace.isEnabled()
    assert trace.toolTip() == "This row names no key."
    terms = []
    entries.termRequested.connect(lambda how, term: terms.append((how, term)))
    next(a for a in menu.actions() if a.text().startswith("Only physicalOffset")).trigger()
    assert terms == [("only", f"physicalOffset = {row.physical_offset}")]
    menu.deleteLater()


def test_no_menu_of_a_row_or_mark_has_more_than_fifteen_lines(themed_app):
    """The menu of a message had 26 lines: nobody finds a command in such a list."""
    lengths = {}
    for kind in PARTS_OF:
        menu = QMenu()
        term = Facts(kind, term='topic = "Orders"')
        add_row_commands(menu, term, lambda *_: None, None, lambda menu: add_terms(menu, "a = 1", lambda *_: None))
        shown = [action for action in actions_in(menu) if action.objectName() and "filter." not in action.objectName()]
        assert [action.objectName() for action in shown] == [command.id for command in row_commands_of(kind)]
        menus = [menu, *menu.findChildren(QMenu)]
        assert all(len(submenu.actions()) > 1 for submenu in menus)
        lengths[kind] = max(sum(not action.isSeparator() for action in each.actions()) for each in menus)
    assert {kind: length for kind, length in lengths.items() if length > 15} == {}


def facts(field: str) -> Any:
    return cast("Any", SimpleNamespace(kind="unit", field=field))


def test_a_field_is_explained_and_the_help_says_more(themed_app):
    title, text, source = words_of(facts("bodyCRC"))
    assert title == "bodyCRC"
    assert text.endswith(".")
    assert source == "More in the help: Commit log › Unit"


def test_a_field_without_an_explanation_keeps_its_name(themed_app):
    assert words_of(facts("nonsense")) == ("nonsense", "", "")


def test_a_screen_reader_hears_all_of_it(shown):
    host = shown(QWidget())
    box = ExplainBox(facts("bodyCRC"), host)
    _title, text, source = words_of(facts("bodyCRC"))
    assert box.accessibleName() == "bodyCRC"
    assert box.accessibleDescription() == f"{text} {source}"
    box.close()


FILES = (LineFile("00000000000000000000", 0, 1000), LineFile("00000000000000001000", 1000, 2000))


def reasons(mark):
    """Return a dictionary: command → reason why it is impossible."""
    return {
        command.id: reason for command in row_commands_of(mark.facts.kind) if (reason := command.without(mark.facts))
    }


def test_the_log_s_line_tells_finding_bookmark_damage_and_file_apart(shown) -> None:
    line = shown(LineStrip())
    assert line.mark_at(None) is None
    line.set_line(LogLine(0, 2000, 2000, FILES))
    finding, goal = SimpleNamespace(id="CL01", command="storescope check"), SimpleNamespace(kind="log", offset=600)
    line.set_pins([LinePin(300, "error", "CL01 damaged", finding), LinePin(600, "note", "mine", link=goal)])
    line.set_broken([UnreadableRange(1000, 1200, "damaged"), UnreadableRange(1500, 1700, "missing")])
    under = {offset: line.mark_at(QPointF(line._x(offset), 30))[0] for offset in (100, 300, 600, 1100, 1600)}
    assert under[300].facts.finding is finding
    assert "copy.step" in {command.id for command in row_commands_of(under[300].facts.kind)} - set(reasons(under[300]))
    assert under[600].facts.link is goal
    assert under[600].words == "mine"
    assert (under[1100].facts.field, under[1100].facts.offset, under[1100].facts.size) == ("damaged", 1000, 200)
    assert reasons(under[1600])["bytes.export"] == "Nothing is on the disk there."
    assert under[100].value == FILES[0].name
    assert abs(under[100].facts.offset - 100) <= 2
    line.set_frame(1300, 1400)
    by_key = line.mark_at(None)
    assert by_key is not None
    assert by_key[0].facts.offset == 1300


def test_a_flag_of_the_ruler_is_hit_at_its_box_its_stem_and_by_key(shown) -> None:
    ruler = shown(Ruler())
    assert ruler.mark_at(None) is None
    wrote = RulerFlag("wrote", 1900, "posLog", True)
    ruler.show_view(RulerView(((0, 2000, "0"),), 0, 1900, (wrote, RulerFlag("dispatched", 900, "posTime", False))))
    ruler.grab()
    flag, request, place = ruler._placed(above=True)[0]
    assert ruler._flag_at(QPointF(request.x, 130)) == flag
    top = 138 - 54 - 20 * place.level
    assert ruler._flag_at(QPointF(place.left + 3, top + 9)) == flag
    mark = ruler.mark_at(None)
    assert mark is not None
    assert (mark[0].facts.offset, mark[0].facts.field) == (1900, "position")
    assert parse(mark[0].facts.term) is not None


def test_a_group_s_flag_on_the_queue_s_line_names_its_group(shown) -> None:
    line = shown(QueueLine())
    assert line.mark_at(None) is None
    goal = SimpleNamespace(kind="groups", name="billing")
    flag = QueueFlag("billing", 50, "accent", "50 behind", "billing", goal)
    line.show_span(QueueSpan((), 0, 100, (flag,), (), "Orders", 2), "Orders")
    line.show_window(10, 20)
    box = line._flag_boxes()[0][2]
    hit = line.mark_at(box.center())[0]
    assert (hit.facts.group, hit.facts.link, hit.facts.queue_offset) == ("billing", goal, 50)
    assert "queueOffset >= 50" in hit.facts.term
    bare = line.mark_at(QPointF(line._scale().x(70), 50))[0]
    assert bare.facts.group == ""
    assert bare.facts.queue_offset in {69, 70, 71}
    assert line.mark_at(None)[0].facts.queue_offset == 10


def test_a_stretch_of_a_file_s_strip_leads_to_its_first_trouble(shown) -> None:
    strip = shown(FileStrip())
    assert strip.mark_at(None) is None
    cells = tuple(MapCell(n * 100, n * 100 + 100, (("A", 100),), int(n == 1), 0, 0, 0, 100) for n in range(4))
    strip.show_map(FileMap("0", 0, 400, cells, 4, (130,), (), True))
    assert strip.mark_at(None)[0].facts.offset == 0
    assert strip.mark_at(QPointF(strip._cell_left(1) + 5, 20))[0].facts.offset == 130


def test_a_file_of_space_s_line_goes_to_its_first_byte(shown) -> None:
    line = shown(SpaceLine())
    assert line.mark_at(None) is None
    assert line.mark_at(QPointF(50, 20)) is None
    line.show_files(LogLine(0, 2000, 2000, FILES), [Block(file.name, file.start, file.end) for file in FILES], ())
    assert line.mark_at(QPointF(line._x(1500), 20))[0].facts.offset == 1000
    line.choose(FILES[0].name)
    assert line.mark_at(None)[0].value == FILES[0].name
