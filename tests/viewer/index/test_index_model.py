"""The model of the index view: files, slots and a trace, and where a step leads."""

from __future__ import annotations

import pytest

from engine.rules.findings import Finding
from viewer.index.facts import FileRow
from viewer.index.index_model import CHAIN, FILES, SLOT, STEPS, IndexModel
from viewer.index.trace_lanes import StepRow, TraceQuery, TraceResult
from viewer.runtime import places
from viewer.widgets.table_state import TableState

NEW, OLD = FileRow("20260102000000000", 420, index_count=6), FileRow("20260101000000000", 420, index_count=11)


def step(number, verdict, *, kind="entry", file=NEW.name, offset=None):
    return StepRow(number, file, kind, 7, number, 1, offset, None, None, verdict, None)


FILE_OF_TRACE = object()
STEP_ROWS = [
    step(1, "slot", kind="slot"),
    step(2, "collision", offset=100),
    step(3, "match", offset=200),
    step(4, "gone"),
    step(5, "match", offset=300),
    step(6, "loop"),
]


def answer(steps=STEP_ROWS, *, near=None, cut=False, files=(FILE_OF_TRACE,)):
    return TraceResult(TraceQuery("Orders", "A1", near=near), list(files), list(steps), cut=cut)


def traced(**options):
    model = IndexModel()
    model.take_files([NEW, OLD], None)
    model.take_answer(answer(**options))
    return model


def test_another_store_begins_with_its_files_and_no_slot():
    model = traced()
    chain, trace = model.begin_chain(NEW.name, 3), model.begin_trace()
    model.forget_store()
    assert (model.files, model.answer, model.slot) == ([], None, None)
    assert (model.top_page, model.low_page) == (FILES, SLOT)
    assert not model.is_current_chain(chain)
    assert not model.is_current_trace(trace)
    assert model.status() == ""


def test_unchanged_files_are_not_rebuilt_and_findings_mark_them():
    model = IndexModel()
    assert model.take_files([NEW, OLD], [])
    assert not model.take_files([NEW, OLD], [])
    finding = Finding("IX03", "error", "index", f"index/{OLD.name}", 40, "a loop", {}, (), "")
    assert model.take_files(model.files, [finding])
    assert [row.health for row in model.files] == ["", "loop"]
    assert model.files_state() is None
    assert model.status() == "2 index files · 15 entries"
    assert (model.index_of_file(OLD.name), model.index_of_file("other")) == (1, None)


def test_a_store_without_index_files_has_a_message_each_time():
    model = IndexModel()
    assert model.take_files([], [])
    assert model.take_files([], [])
    assert model.files_state() == TableState("empty", "This store has no index files.")


def test_a_place_waits_for_the_files_and_is_shown_once():
    model = IndexModel(pending_place=places.index(NEW.name))
    assert model.take_pending_place() == places.index(NEW.name)
    assert model.take_pending_place() is None


def test_a_store_that_grows_while_the_view_is_hidden_is_read_later():
    model = IndexModel()
    assert not model.grow(visible=False)
    assert model.is_stale
    assert model.grow(visible=True)
    assert not model.is_stale


def test_only_the_chain_of_the_last_chosen_slot_is_shown():
    model = IndexModel()
    assert model.low_head() == ("Slot", "choose one in the map")
    first_generation = model.begin_chain(NEW.name, 3)
    second_generation = model.begin_chain(OLD.name, 1200)
    assert (model.is_current_chain(first_generation), model.is_current_chain(second_generation)) == (False, True)
    assert model.low_head() == ("Slot 1,200", f"in {OLD.name}, newest entry first")


def test_an_answer_brings_its_chains_and_steps_to_the_front():
    model = IndexModel()
    assert model.steps_state().text.startswith("Type a topic and a key")
    older, newer = model.begin_trace(), model.begin_trace()
    assert (model.is_current_trace(older), model.is_current_trace(newer)) == (False, True)
    model.take_answer(answer())
    assert (model.top_page, model.low_page) == (CHAIN, STEPS)
    assert model.top_head()[0] == "Chain"
    assert model.steps_state() is None
    model.show_page(top=FILES)
    assert (model.top_page, model.low_page) == (FILES, STEPS)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"files": ()}, "empty", "This store has no index files, so no key can be found through them."),
        ({"cut": True}, "cut", "Cut off after 6 steps."),
    ],
)
def test_missing_steps_have_a_message(options, kind, text):
    assert traced(**options).steps_state() == TableState(kind, text)


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({}, 3),
        ({"near": (300, 0)}, 5),
        ({"near": (999, 0)}, 3),
        ({"steps": STEP_ROWS[:2]}, 1),
    ],
)
def test_the_first_chosen_step_is_the_sought_match(options, number):
    assert traced(**options).first_step().step == number


def test_without_steps_nothing_is_chosen():
    assert IndexModel().first_step() is None
    assert traced(steps=()).first_step() is None


@pytest.mark.parametrize(
    ("current", "way", "problem", "number"),
    [
        (None, 1, False, 3),
        (3, 1, False, 5),
        (5, 1, False, None),
        (5, -1, False, 3),
        (None, 1, True, 2),
        (4, 1, True, 6),
        (4, -1, True, 2),
    ],
)
def test_matches_and_problems_are_stepped_through(current, way, problem, number):
    model = traced()
    row = model.step(current) if current is not None else None
    assert model.next_step(row, way, problem=problem) == number


def test_the_slot_of_a_step_has_the_length_of_its_chain_in_that_file():
    model = traced(steps=[*STEP_ROWS, step(7, "match", file=OLD.name), step(8, "match", file="elsewhere")])
    shown = model.slot_of_step(STEP_ROWS[2])
    assert (shown.file, shown.slot, shown.length) == (NEW, 7, 4)
    assert model.slot_of_step(model.step(7)).length == 1
    assert model.slot_of_step(model.step(8)) is None
