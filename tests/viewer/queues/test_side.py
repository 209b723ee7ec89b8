"""Beside a queue: the reason for its minimum, and the fields of an entry."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from engine.inspection.groups import GroupProgress
from viewer.queues.facts import QueueFacts
from viewer.queues.rows import EntryRow
from viewer.queues.side import QueueSide, batch_fields, minimum_words, simple_fields
from viewer.queues.verdict_work import Verdicts

FACTS = QueueFacts("T", 0, "simple", (), 0, 7, 50, 50, "corrected", 640, (), False)
ENTRY = EntryRow(3, "T", 0, 3, 640, 200, 12345, "entry", "ok", "A", tags="A")


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("noFiles", "The queue has no files, so it holds nothing."),
        ("nothing", "min (computed) is 7, the same as max"),
        ("corrected", "Entries 0 to 6 point to a deleted log file."),
        ("kept", "although its unit at 640 is before the log's beginning."),
        ("first", "the first entry in the files, and its unit at 640 is in the log."),
    ],
)
def test_the_minimum_is_explained(why, text):
    assert text in minimum_words(replace(FACTS, why_min=why))


def test_the_fields_of_an_entry_match_its_bytes():
    fields = simple_fields(ENTRY)
    assert [(field.name, field.start, field.length) for field in fields] == [
        ("physicalOffset", 0, 8),
        ("size", 8, 4),
        ("tagsCode", 12, 8),
    ]
    assert (fields[2].value, fields[2].note) == ("12,345", "is “A”")
    ext = simple_fields(replace(ENTRY, ext_address=-(1 << 63) + 20))[2]
    assert (ext.value, ext.note) == ("ext byte 20", "address in the ext file")
    assert (
        sum(batch_field.length for batch_field in batch_fields(replace(ENTRY, batch_size=4, store_timestamp=1))) == 46
    )


def test_another_queue_clears_the_previous_one(qtbot):
    side = QueueSide()
    qtbot.addWidget(side)
    side.show_queue(replace(FACTS, groups=(GroupProgress("g", "T", 0, 5, 50, 45, None, "behind", "cluster"),)))
    assert [row.group for row in side.groups.source.rows] == ["g"]
    side.show_queue(None)
    assert side.groups.source.rows == []


def test_a_group_for_which_messages_wait_has_not_caught_up(qtbot):
    """The column showed "caught up" although five messages of the group waited in its retry topic."""
    side = QueueSide()
    qtbot.addWidget(side)
    group = GroupProgress("g", "T", 0, 50, 50, 0, None, "caughtUp", "cluster")
    side.show_queue(replace(FACTS, groups=(group, replace(group, group="h", waiting=5))))
    assert side.groups.table.texts(0)[3] == "caught up"
    assert side.groups.table.texts(1)[3] == "5 wait"


def test_entries_that_cannot_be_read_are_not_called_resolved(qtbot):
    """It showed "426 entries, all resolved" above "175 cannot be read"."""
    side = QueueSide()
    qtbot.addWidget(side)
    side.show_verdicts(Verdicts(Counter(ok=251, unread=175), reached=426, total=426))
    assert side._verdict_head.note.text() == "251 of 426 entries resolved"
