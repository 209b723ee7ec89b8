"""The model of the log view: filter, find, marks and places, over rows that need no file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.codec.message import Unit
from viewer.log.colour_rules import Rule
from viewer.log.find_work import Hits
from viewer.log.log_model import FilterState, FindState, LogModel, next_of
from viewer.log.row_markings import RowMarks
from viewer.log.rows import LogSource, MatchSource, NonUnitRow, UnitRow
from viewer.look.broken import UnreadableRange
from viewer.widgets.log_line import LogLine
from viewer.widgets.search_term import SearchTerm

GIB = 1 << 30


def log_of(end: int = 4 * GIB, start: int = GIB) -> LogSource:
    reader = SimpleNamespace(min_offset=start, end_offset=end, known_end=end)
    return LogSource(cast("Any", reader))


def unit_at(offset: int, time: int = 0) -> UnitRow:
    return UnitRow(offset, 100, "Orders", 0, 0, time, None, [], "ok", "", False, 0, b"")


@pytest.fixture
def model() -> LogModel:
    log_model = LogModel()
    log_model.log = log_of()
    return log_model


@pytest.fixture
def filtered(model: LogModel) -> LogModel:
    """Return a model with a filter that has found three rows."""
    assert model.log is not None
    model.filter.begin('topic = "Orders"', model.log).offsets.extend([1000, 3000, 5000])
    return model


def test_closing_a_store_keeps_the_users_settings(filtered: LogModel) -> None:
    filtered.markings.marked.add(1000)
    filtered.rules, filtered.custom_columns = [Rule("mine", 'topic = "Orders"')], ("bornHost",)
    filtered.find.sought, filtered.upto = SearchTerm("text", "a"), 17
    filtered.close()
    assert (filtered.log, filtered.filter.source, filtered.filter.text, filtered.upto) == (None, None, "", -1)
    assert (filtered.find.sought, filtered.find.hit, filtered.marks) == (None, None, RowMarks())
    assert (filtered.coloured, filtered.custom_columns, filtered.span) == (True, ("bornHost",), (0, 0))


def test_the_span_of_a_log_is_never_turned_round(model: LogModel) -> None:
    assert model.span == (GIB, 4 * GIB)
    model.log = log_of(end=0, start=GIB)
    assert model.span == (GIB, GIB)


# ---- the filter ------------------------------------------------------------------------------------------------------


def test_a_filter_reports_its_progress_in_one_unit(filtered: LogModel) -> None:
    state = filtered.filter
    state.looked = 2 * GIB
    assert state.sentence("complete") == "3 units match · scanned 1.00 of 3.00 GiB"
    state.looked, state.complete, state.spent = 4 * GIB, True, 4.14
    assert state.sentence("not all readable").endswith("scanned 3.00 of 3.00 GiB in 4.1 s · not all readable")
    assert filtered.status("complete") == state.sentence("complete")


def test_a_filter_with_little_progress_names_both_units(filtered: LogModel) -> None:
    filtered.filter.looked = GIB + 5
    assert "scanned 5 B of 3.00 GiB" in filtered.filter.sentence("complete")


def test_a_new_filter_begins_where_the_log_does(filtered: LogModel) -> None:
    state = filtered.filter
    state.looked, state.complete, state.spent = 4 * GIB, True, 9.0
    assert filtered.log is not None
    state.begin("crcBad", filtered.log)
    assert (state.text, state.match_count, state.complete, state.spent) == ("crcBad", 0, False, 0.0)
    assert (state.start, state.looked, state.end) == (GIB, GIB, 4 * GIB)


def test_places_among_the_rows_of_a_filter_are_their_numbers(filtered: LogModel) -> None:
    assert [filtered.place_of(offset) for offset in (1000, 3000, 4000, 9000)] == [0, 1, None, None]
    assert [filtered.place_near(offset) for offset in (0, 1001, 9000)] == [0, 1, 3]
    assert filtered.frame(0, 2) == (1000, 3000)
    assert filtered.frame(7, 9) == (5000, 5000)
    assert filtered.chosen_span((0, 2)) == (1000, 5000)


def test_without_a_filter_places_are_offsets(model: LogModel) -> None:
    assert (model.place_of(4711), model.place_near(4711)) == (4711, 4711)
    assert (model.frame(10, 20), model.chosen_span((10, 20)), model.chosen_span(None)) == ((10, 20), (10, 20), None)


def test_a_filter_without_hits_frames_nothing_else(model: LogModel) -> None:
    assert model.log is not None
    model.filter.begin("crcBad", model.log)
    assert model.frame(0, 1) == (0, 1)
    assert model.place_of(0) is None


# ---- how long the log is ---------------------------------------------------------------------------------------------


def test_rows_are_reported_as_far_as_they_are_counted(model: LogModel) -> None:
    assert model.status("complete") == ""
    model.extent = cast("LogLine", SimpleNamespace(low=GIB, written=4 * GIB))
    text = "3.00 GiB of log, offsets 1,073,741,824 to 4,294,967,296"
    assert model.status("complete") == text
    model.counted(cast("Any", SimpleNamespace(total=12, end=2 * GIB)))
    assert model.status("complete") == f"{text} · 12 rows up to 2,147,483,648"
    model.rows, model.upto = 1, 4 * GIB
    assert model.status("complete") == f"{text} · 1 row"


def test_an_older_index_removes_no_counted_row(model: LogModel) -> None:
    model.rows, model.upto = 20, 4 * GIB
    model.counted(cast("Any", SimpleNamespace(total=12, end=2 * GIB)))
    assert (model.rows, model.upto) == (20, 4 * GIB)


def test_an_index_of_a_log_that_is_shorter_now_counts_nothing(model: LogModel) -> None:
    model.counted(cast("Any", SimpleNamespace(total=12, end=1 << 60)))
    assert model.upto == -1


# ---- find ------------------------------------------------------------------------------------------------------------

TEXT, OTHER_TEXT = SearchTerm("text", "needle"), SearchTerm("text", "thread")


def test_a_search_begins_at_the_row_or_after_it_if_it_is_the_hit() -> None:
    state, row = FindState(), unit_at(500)
    assert state.at(None, 7, TEXT, forward=True) == 7
    assert state.at(row, 7, TEXT, forward=True) == 500
    state.take(500, TEXT)
    assert state.at(row, 7, TEXT, forward=True) == 600
    assert state.at(row, 7, TEXT, forward=False) == 500
    assert state.at(row, 7, OTHER_TEXT, forward=True) == 500, "another text may stand in the same row"


def test_hits_of_the_chosen_rows_are_stepped_through_round_the_end() -> None:
    state, offsets = FindState(), (100, 200, 300)
    assert state.step(offsets, 150, TEXT, forward=True) == (1, False)
    assert state.step(offsets, 200, TEXT, forward=True) == (2, False)
    assert state.step(offsets, 300, TEXT, forward=True) == (0, True)
    assert state.step(offsets, 100, TEXT, forward=False) == (2, True)
    assert state.hit == 300


def test_hits_are_counted_once_per_search_and_again_if_truncated() -> None:
    state, request = FindState(), (TEXT, "", 0, 100)
    state.keep(request, Hits((1, 2), False))
    assert state.counted(request) is None
    state.keep(request, Hits((1, 2), True))
    assert state.counted(request) == Hits((1, 2), True)
    assert state.counted((TEXT, "crcBad", 0, 100)) is None
    state.forget()
    assert state.counted(request) is None


# ---- marks that the user puts on rows --------------------------------------------------------------------------------


def test_marks_toggle_and_the_next_one_is_found_past_the_end(model: LogModel) -> None:
    assert model.next_mark(None, 1) is None
    assert model.marked_filter() == ""
    for offset in (300, 100, 200):
        assert model.put_marks(model.mark_turned(unit_at(offset))) is False
    assert [model.next_mark(unit_at(200), step) for step in (1, -1)] == [300, 100]
    assert [model.next_mark(unit_at(300), 1), model.next_mark(unit_at(100), -1)] == [100, 300]
    assert model.next_mark(None, 1) == 100
    assert model.marked_filter() == "physicalOffset in (100, 200, 300)"
    model.put_marks(model.mark_turned(unit_at(200)))
    assert model.marks.marked == {100, 300}


def test_a_reference_is_set_moved_and_removed(model: LogModel) -> None:
    first_unit, second_unit = unit_at(100, time=5000), unit_at(200, time=7000)
    assert model.put_marks(model.reference_turned(first_unit)) is True
    assert model.markings.reference == (100, 5000)
    model.put_marks(model.reference_turned(second_unit))
    assert model.markings.reference == (200, 7000)
    model.put_marks(model.reference_turned(second_unit))
    assert model.markings.reference is None


def test_saved_marks_are_merged_with_new_ones(model: LogModel) -> None:
    model.put_marks(RowMarks(frozenset({1}), frozenset(), (1, 10)))
    model.add_marks(RowMarks(frozenset({2}), frozenset({3}), (2, 20)))
    assert model.marks == RowMarks(frozenset({1, 2}), frozenset({3}), (1, 10))


def test_ignored_rows_are_left_out_of_every_filter(model: LogModel) -> None:
    assert model.without_ignored_rows("crcBad") == "crcBad"
    model.put_marks(model.ignore_turned(NonUnitRow("damage", 50, 10, 60)))
    assert model.without_ignored_rows("") == "not physicalOffset in (50)"
    assert (
        model.without_ignored_rows('topic = "a" or topic = "b"')
        == '(topic = "a" or topic = "b") and not physicalOffset in (50)'
    )


def test_an_export_takes_the_rows_of_its_scope(filtered: LogModel) -> None:
    filtered.put_marks(RowMarks(frozenset({1000, 3000}), frozenset({3000})))
    row, text, without = unit_at(5000), 'topic = "Orders"', "not physicalOffset in (3000)"
    assert filtered.to_export("row", row, None) == ((5000,), "")
    assert filtered.to_export("row", None, None) == ((), "")
    assert filtered.to_export("marked", row, None) == ((1000,), "")
    assert filtered.to_export("all", row, None) == (None, without)
    assert filtered.to_export("filter", row, (1, 2)) == (None, f"{text} and {without}")
    assert filtered.to_export("span", row, (1, 2)) == (None, f"{text} and {without} and physicalOffset between 1 and 2")


def test_rows_are_read_with_the_rules_and_the_columns_in_force(model: LogModel) -> None:
    model.rules = [
        Rule("off", 'topic = "Orders"', on=False),
        Rule("broken", "topic ="),
        Rule("mine", "queueId = 3", "red"),
    ]
    assert model.coloured
    model.custom_columns = ("bornHost", "nonsense")
    model.apply_row_styles(lambda _offset: None)
    assert model.log is not None
    assert [name for name, _read in model.log.fields] == ["bornHost"]
    assert model.log.style_of is not None
    unit = cast("Unit", {"topic": "Orders", "queueId": 3})
    assert (model.log.style_of(unit).rule, model.log.style_of(unit).tint) == ("mine", "red")


@pytest.mark.parametrize(
    ("offset", "step", "expected"), [(2, 1, 5), (5, 1, 9), (9, 1, None), (5, -1, 2), (2, -1, None)]
)
def test_the_next_of_offsets_is_the_nearest_one(offset: int, step: int, expected: int | None) -> None:
    assert next_of({9, 2, 5}, offset, step) == expected


def test_missing_and_unreadable_bytes_are_not_scanned() -> None:
    """A filter over a log with an unread file reported "scanned 2.33 of 2.33 MiB", although a mebibyte was not read."""
    state = FilterState("x", MatchSource(cast("Any", None)), complete=True, start=0, end=3 << 20, looked=3 << 20)
    state.broken = lambda: (UnreadableRange(0, 1 << 20, "unread"), UnreadableRange(1 << 20, 2 << 20, "missing"))
    assert "scanned 1.00 of 2.00 MiB" in state.sentence("incomplete")
