"""The state of the view SQL, and what it says."""

from __future__ import annotations

from dataclasses import replace

from viewer.sql.answers import Answer, Question, Refusal, ResultColumn, Vocabulary
from viewer.sql.sql_model import SqlModel

ANSWER = Answer(
    Question("SELECT 1", row_limit=100),
    (ResultColumn("n", "integer"),),
    1,
    ((1,),),
    None,
    (0,),
    False,
    True,
    0.5,
    640,
    0,
)


def model_with(answer: Answer | Refusal) -> SqlModel:
    model = SqlModel()
    model.begin()
    model.take(answer, ())
    return model


def test_the_head_says_how_much_how_long_and_when() -> None:
    assert model_with(ANSWER).head_note().startswith("1 row · 0.50 s · read at ")
    assert SqlModel().head_note() == ""
    assert "not complete" in model_with(replace(ANSWER, is_complete=False)).head_note()
    assert model_with(replace(ANSWER, is_cut=True, row_count=100)).summary() == "the first 100 rows"


def test_a_cut_answer_offers_more_rows_of_the_same_question() -> None:
    assert model_with(ANSWER).next_question() is None
    assert model_with(ANSWER).cut_words() == ""
    model = model_with(replace(ANSWER, is_cut=True, row_count=100))
    assert model.next_question() == Question("SELECT 1", row_limit=1000)
    assert model.cut_words() == "First 100 rows. An export writes all of them."


def test_an_answer_grows_old_when_the_store_grows_or_other_patches_are_shown() -> None:
    model = model_with(ANSWER)
    assert model.stale_words(640, ()) == ""
    assert model.stale_words(641, ()).endswith("the store has grown since.")
    assert model.stale_words(640, ("patch",)).endswith("other patches are shown since.")  # type: ignore[arg-type]
    assert SqlModel().stale_words(1, ()) == ""


def test_the_table_says_why_it_is_empty() -> None:
    model = SqlModel()
    assert (state := model.table_state()) is not None
    assert state.text.startswith("Ctrl+Enter asks.")
    model.begin()
    assert (state := model.table_state()) is not None
    assert state.kind == "loading"
    model.stop()
    assert (state := model.table_state()) is not None
    assert state.text == "The question was stopped."
    assert model_with(ANSWER).table_state() is None
    assert (state := model_with(replace(ANSWER, row_count=0, rows=())).table_state()) is not None
    assert state.kind == "empty"
    model = SqlModel(vocabulary=Vocabulary({}, missing="SQL needs the package duckdb"))
    assert (state := model.table_state()) is not None
    assert state.text == "SQL needs the package duckdb"


def test_a_refusal_leaves_the_answer_before_it() -> None:
    model = model_with(ANSWER)
    model.take(Refusal("no such column"), ())
    assert model.fault() == "no such column"
    assert model.answer is ANSWER
    model.begin()
    assert model.fault() == ""
    model.fail("Permission denied")
    assert model.fault() == "Permission denied"
    model.forget_store()
    assert (model.answer, model.fault()) == (None, "")


def test_earlier_questions_come_and_go_around_the_draft() -> None:
    model = SqlModel()
    used = ["C", "B", "A"]
    shown = [model.older(used, 1, "draft") for _ in range(4)]
    assert shown == ["C", "B", "A", "A"]
    assert [model.older(used, -1, "A") for _ in range(3)] == ["B", "C", "draft"]
