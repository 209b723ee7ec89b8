"""Columns of tables."""

from __future__ import annotations

import pytest

from viewer.runtime import places
from viewer.widgets.columns import (
    RecordKind,
    chip_column,
    elsewhere,
    number_column,
    text_column,
    time_column,
    topic_column,
)
from viewer.widgets.record_table import RecordTable, ValueRole
from viewer.widgets.table_columns import BODY, NAME, SENTENCE, WHOLE, rank_of

FAR = (1 << 62) + 3


def test_dictionaries_are_read_by_rocketmqs_spelling():
    model = RecordTable(RecordKind("cq", (number_column("queueOffset", "Queue offset", 10),)), [{"queueOffset": FAR}])
    assert model.data(model.index(0, 0), ValueRole) == FAR


@pytest.mark.parametrize(
    ("column", "rank"),
    [
        (number_column("queueOffset", "Queue offset", 90), WHOLE),
        (time_column("storeTimestamp", "Stored"), WHOLE),
        (chip_column("crc", "CRC", 70, lambda _row: None), WHOLE),
        (topic_column(), NAME),
        (text_column("why", "Why", 200), SENTENCE),
        (text_column("body", "Body", 200, slim=True), BODY),
    ],
)
def test_the_kind_of_a_column_follows_from_its_constructor(column, rank):
    assert rank_of(column) == rank


def test_a_place_is_marked_and_other_things_stay_as_they_are():
    place = places.log(42)
    marked = elsewhere(place)
    assert (marked.new_window, marked.offset, place.new_window) == (True, 42, False)
    assert elsewhere("a text") == "a text"
    assert elsewhere(None) is None
