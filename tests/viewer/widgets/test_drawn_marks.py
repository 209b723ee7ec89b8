"""Marks that are drawn by hand, and their menus."""

from __future__ import annotations

import json
from types import SimpleNamespace

from engine.query import parse
from viewer.look.broken import UnreadableRange
from viewer.widgets.areas import Area
from viewer.widgets.drawn_marks import area_mark, broken_mark, entry_mark, node_mark
from viewer.widgets.row_commands import (
    BY_ID,
    MARKS,
    row_commands_of,
)
from viewer.widgets.store_tree_rows import Node
from viewer.widgets.treemap import Treemap


def reasons(mark):
    """Return a dictionary: command → reason why it is impossible."""
    return {
        row_command.id: reason
        for row_command in row_commands_of(mark.facts.kind)
        if (reason := row_command.without(mark.facts))
    }


def test_an_area_s_menu_is_its_topic_s(shown) -> None:
    root = Area("", "", 300, children=(Area("Orders", "Orders", 200, 3, "Orders"), Area("\0o", "others", 100)))
    treemap = shown(Treemap())
    treemap.show_areas(root)
    assert treemap.mark_at(None) is None
    treemap.choose(("Orders",))
    mark = treemap.mark_at(None)[0]
    assert mark.facts.term == 'topic = "Orders"'
    assert area_mark(None, "\0others", "", "").facts.term is None


def test_every_mark_has_conditions_that_can_be_asked_and_reasons_for_the_rest() -> None:
    place = SimpleNamespace(kind="queue", topic='a "b"', queue_id=3)
    marks = [
        node_mark(Node('queue/a "b"/3', "Queue 3", place=place)),
        entry_mark("T", 0, 5, "entry 5"),
        entry_mark("T", 0, 5, "g", "g"),
        broken_mark(UnreadableRange(0, 5, "unread")),
        area_mark(None, "", "x", "x"),
    ]
    for mark in marks:
        assert mark.facts.kind in MARKS
        assert mark.facts.term is None or parse(mark.facts.term) is not None
        assert all(reason.endswith(".") for reason in reasons(mark).values())
        assert json.loads(json.dumps(mark.record))["value"] == mark.value
    assert BY_ID["explain.field"].without(marks[0].facts) == ""
