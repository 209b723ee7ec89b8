"""The model of the positions view: at rest or live, running polls, and missing parts."""

from __future__ import annotations

from dataclasses import replace

from sample_position_looks import look

from engine.replication.master import SlavePosition
from viewer.look.broken import UnreadableRange
from viewer.pane.position_facts import PositionRow
from viewer.positions.positions_model import MAX_BROKEN, SLAVES_INTERVAL_S, PositionsModel, row_words, unknown_facts
from viewer.runtime.live_history import LiveHistory
from viewer.widgets.table_state import TableState

SLAVE = SlavePosition("127.0.0.1:5", 9000, 8000, 7000)
HISTORY = LiveHistory()


def test_only_one_poll_runs_at_a_time():
    model = PositionsModel()
    assert (model.begin_reading(), model.begin_reading()) == (True, False)
    model.end_reading()
    assert model.begin_reading()
    model.forget_store()
    assert model.begin_reading()


def test_a_growing_store_is_polled_even_at_rest():
    model = PositionsModel()
    assert not model.grow(visible=False)
    assert model.is_stale
    assert model.grow(visible=True)
    assert not model.is_stale
    model.live = True
    assert not model.grow(visible=True)


def test_another_store_starts_at_rest_without_values():
    model = PositionsModel()
    model.live = True
    model.take(look(1), HISTORY)
    model.take_slaves((SLAVE,))
    model.forget_store()
    assert (model.reading, model.rows, model.live, model.slaves) == (None, [], False, ())
    assert model.status() == ""


def test_the_first_poll_has_a_row_for_each_position():
    model = PositionsModel()
    assert model.take(look(1), HISTORY)
    assert not model.take(look(2), HISTORY)
    assert model.rows[model.index_of("wrote")].offset == look(2).positions.wrote.offset
    assert model.index_of("no position") is None
    assert f"{look(2).positions.wrote.offset:,} bytes written" in model.status()
    assert model.table_state() is None
    model.take(replace(look(3), files=()), HISTORY)
    assert model.table_state() == TableState("empty", "The store has no commit log.")


def test_a_live_store_at_an_earlier_time_is_not_called_now():
    model = PositionsModel()
    assert model.head(at_end=True) == ("Now", "")
    model.take(look(1), HISTORY)
    assert model.head(at_end=False)[0] == "Now"
    model.live = True
    assert model.head(at_end=True)[0] == "Now"
    assert model.head(at_end=False)[0] == "At that time"
    assert model.head(at_end=False)[1]


def test_slaves_are_read_once_a_second_except_for_a_lab():
    model, at_rest = PositionsModel(), replace(look(1), lab=False)
    wrote = at_rest.positions.wrote.offset
    assert model.begin_slaves(replace(look(1), lab=True), 100.0) is None
    assert model.begin_slaves(at_rest, 100.0) == wrote
    assert model.begin_slaves(at_rest, 100.0 + 2 * SLAVES_INTERVAL_S) is None, "the last answer has not come"
    model.take_slaves((SLAVE,))
    assert model.slaves == (SLAVE,)
    assert model.begin_slaves(at_rest, 100.0 + SLAVES_INTERVAL_S / 2) is None
    assert model.begin_slaves(at_rest, 100.0 + SLAVES_INTERVAL_S) == wrote


def test_positions_that_are_unknown_for_one_reason_are_one_line():
    """A log file without permission repeated its three lines of "Permission denied" six times."""
    rows = [
        PositionRow(name, name, "posLog2", None, None, "", "Permission denied", None) for name in ("wrote", "flushed")
    ]
    assert [fact.value for fact in unknown_facts(rows)] == ["wrote, flushed: Permission denied"]


def test_missing_parts_are_listed_and_nothing_is_complete_before_a_poll():
    model = PositionsModel()
    assert model.missing_facts(()) == []
    model.rows = [PositionRow("wrote", "wrote", "posLog2", 9, None, "", "", None)]
    assert [fact.value for fact in model.missing_facts(())] == ["The files show every position."]
    broken = [UnreadableRange(n, n + 1, "missing") for n in range(MAX_BROKEN + 3)]
    values = [fact.value for fact in model.missing_facts(broken)]
    assert values == [*(broken_range.words for broken_range in broken[:MAX_BROKEN]), "and 3 more"]


def test_a_row_names_its_source():
    row = PositionRow("wrote", "wrote", "posLog2", None, None, "", "Permission denied", None)
    assert row_words(row).startswith("wrote: ")
    assert row_words(None) == ""
