"""The model of the table of differences: the shown kind, and how the comparison ended."""

from __future__ import annotations

from engine.inspection.difference_rows import MAX_ROWS, Differences, Row
from engine.inspection.index_steps import Entry
from viewer.compare.differences_model import FILTERS, TOTALS, DifferencesModel, place_of, verdict_words
from viewer.runtime import places
from viewer.runtime.places import Place

UNITS = [Row("unit", "here", "u"), Row("unit", "differs", "u", count=3)]
QUEUE = Row("queue", "there", "q")


def differing(*rows: Row) -> Differences:
    differences = Differences(compared_bytes=4096)
    for row in rows:
        differences.add(row)
    return differences


def compared(*rows: Row, **options) -> DifferencesModel:
    model = DifferencesModel()
    assert model.begin()
    model.end(differing(*rows), **options)
    return model


def text(model: DifferencesModel) -> str:
    state = model.table_state()
    return state.text if state is not None else ""


def test_stores_are_compared_once_at_a_time_and_the_last_result_goes_meanwhile():
    model = DifferencesModel()
    assert (text(model), model.can_export, model.rows) == ("Nothing was compared yet.", False, [])
    model = compared(QUEUE)
    assert model.can_export
    assert model.begin()
    assert not model.begin()
    assert (model.table_state().kind, model.can_export, model.rows) == ("loading", False, [])


def test_each_kind_shows_its_rows_with_their_number():
    model = compared(*UNITS, QUEUE)
    shown = {}
    for key, _, _ in FILTERS:
        model.kind = key
        shown[key] = model.rows
    assert shown["all"] == [*UNITS, QUEUE]
    assert (shown["units.here"], shown["units.there"], shown["queues"]) == ([UNITS[0]], [], [QUEUE])
    names = dict(model.kinds())
    assert names["all"] == "All differences (5)"
    assert names["units.differ"] == "Units that differ (3)"


def test_a_kind_without_rows_says_so():
    model = compared(QUEUE)
    assert text(model) == ""
    model.kind = "units.here"
    assert text(model) == "No difference of this kind."
    assert text(compared()) == "Both stores are equal."


def test_stores_are_not_called_equal_where_the_comparison_ended_early():
    """The table reported equal stores although it had been stopped before the first difference."""
    for model in (compared(is_stopped=True), compared(error="cannot be read")):
        assert text(model) == model.note(is_complete=True)
        assert "equal" not in text(model)
    model = compared(QUEUE, is_stopped=True)
    assert model.note(is_complete=True) == "Stopped before the end: the table is not complete."
    assert (text(model), model.rows) == ("", [QUEUE])
    model.begin()
    model.end(differing())
    assert model.note(is_complete=True).startswith("Both stores are equal.")


def test_equal_is_said_only_where_all_could_be_read():
    assert verdict_words(differing()).startswith("Both stores are equal. 4.00 KiB of log compared")
    assert verdict_words(differing(), is_complete=False).startswith("No difference in what can be read.")
    assert verdict_words(differing(*UNITS)).startswith("4 differences.")
    cut = Differences([QUEUE] * MAX_ROWS, {("queue", "there"): MAX_ROWS + 5})
    assert verdict_words(cut).endswith("The table has the first 100,000 rows; all are counted.")


def test_a_difference_is_in_either_store():
    unit = Row("unit", "differs", "u", fields="flag, tags", offset=640)
    assert place_of(unit, "here") == place_of(unit, "there") == places.log(640, "flag")
    tail = Row("unit", "here", "u", offset=640, is_beyond=True)
    assert (place_of(tail, "here"), place_of(tail, "there")) == (places.log(640), None)
    entry = Row("queue", "there", "t/0", queue=("t", 0, 5))
    assert (place_of(entry, "here"), place_of(entry, "there")) == (None, places.queue("t", 0, 5))
    indexed = Row("index", "here", "f/7", index_here=Entry("f", 7, 640))
    assert (place_of(indexed, "here"), place_of(indexed, "there")) == (places.index("f", "entry", 7), None)
    assert place_of(Row("config", "differs", "t a", table="t"), "here") == Place("config", name="t")
    assert place_of(Row("checkpoint", "here", "f"), "there") == Place("checkpoint")
    assert place_of(Row("state", "here", "abort"), "here") == Place("abort")
    assert place_of(Row("state", "differs", "commit_log_file_size"), "here") is None
    assert place_of(None, "here") is None


def test_units_are_summed_by_topic_and_queue():
    differences = Differences()
    differences.count_units("here", "T", 1, 3, 5, 9)
    differences.count_units("there", "T", 1, 1, 2, 2)
    model = DifferencesModel()
    model.begin()
    model.end(differences)
    model.kind = TOTALS
    (total,) = model.totals
    assert (total.count("here"), total.count("there"), total.count("differs")) == (3, 1, None)
    assert (total.place("here"), total.place("differs")) == (places.queue("T", 1, 5), None)
    assert total.offsets() == "2 … 9"
    assert model.kinds()[1] == (TOTALS, "Units by topic and queue (1)")
    assert model.rows == []
    assert model.table_state() is None
