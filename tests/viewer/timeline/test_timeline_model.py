"""Rows, choices and words of the view Timeline."""

from __future__ import annotations

from engine.inspection.timeline.events import KINDS, TRACE_KINDS, TimelineEvent
from engine.inspection.timeline.timeline import Timeline
from viewer.look.formats import moment
from viewer.runtime import places
from viewer.timeline.timeline_model import (
    CHIPS,
    EVENT,
    LAST_RUN_WORDS,
    TROUBLE,
    TimelineModel,
    command,
    evidence_text,
    message_text,
)


def event(kind="crash", start=1_000, end=61_000, offset=640) -> TimelineEvent:
    return TimelineEvent(kind, start, end, offset, "words", "likely", "abort", {})


def model_of(*events, **fields) -> TimelineModel:
    model = TimelineModel()
    model.take(Timeline(list(events), **fields))
    return model


def column(key):
    return next(column for column in EVENT.columns if column.key == key)


def test_every_kind_of_event_has_a_chip() -> None:
    assert set(CHIPS) | set(TRACE_KINDS) == set(KINDS)
    assert EVENT.verdict(event()) == "crash"
    assert set(LAST_RUN_WORDS) == {"closed", "notClosed", "running"}


def test_a_row_leads_to_its_unit_and_is_the_record_of_the_command() -> None:
    row = event()
    assert column("physicalOffset").jump(row) == places.log(640)
    assert column("physicalOffset").jump(event(offset=None)) is None
    assert (column("duration").text(row), column("duration").text(event(end=None))) == ("1 min 0 s", "")
    assert EVENT.as_record(row) == row.record()
    assert command(row) == ["storescope", "timeline", "STORE", "--kind", "crash"]


def test_times_in_words_are_those_of_the_window_and_evidence_leaves_out_nothing_but_zeros() -> None:
    row = TimelineEvent(
        "start", 5, None, None, "made at 1970-01-01T00:00:05.000Z", "likely", "index/1", {"made": 5, "waited": 0}
    )
    assert message_text(row) == f"made at {moment(5000)}"
    assert evidence_text(row) == "index/1 · made 5"


def test_choices_count_the_kinds_that_are_there_and_filter_them() -> None:
    model = model_of(event("crash"), event("start"), event("topicAppears"), event("topicAppears"))
    assert model.choices() == [
        ("", "All events (4)"),
        (TROUBLE, "Trouble (1)"),
        ("crash", "crash (1)"),
        ("start", "start (1)"),
        ("topicAppears", "new topic (2)"),
    ]
    model.choose(TROUBLE)
    assert [row.kind for row in model.rows] == ["crash"]
    model.choose("stall")
    assert model.table_state().text == "No event of this choice."
    assert model.summary() == "0 events"


def test_the_note_says_which_time_the_log_covers_and_what_is_not_known() -> None:
    model = model_of(event(), first_stored=0, last_stored=5, state="closed", p50=1, p99=20, damage=7)
    assert model.head_note().endswith(
        "the last run was closed cleanly · born to stored: half within 1 ms, 99 % within 20 ms"
    )
    assert model.unknown_words() == "7 bytes of the log are no messages: events can be missing"
    assert model_of(unknown={"index": "gone"}).table_state().text == "Not known: Index: gone"


def test_without_events_an_error_and_a_stop_are_said() -> None:
    model = TimelineModel()
    assert (model.choices(), model.head_note(), model.summary(), model.table_state()) == (
        [("", "All events")],
        "",
        "",
        None,
    )
    model.stop()
    assert model.table_state().text == "Reading was stopped."
    model.fail("broken")
    assert model.table_state().text == "broken"
    assert model_of().table_state().text == "The files of this store show no event."
    model.forget_store()
    assert model.table_state() is None


def test_the_chosen_row_is_found_again_in_new_rows() -> None:
    model = model_of(event("crash"), event("start"))
    assert (model.row_like(event("start")), model.row_like(event("stall")), model.row_like(None)) == (1, 0, 0)
