"""The state of the Where view, without a window: questions, answers, and what the tables say meanwhile."""

from __future__ import annotations

import pytest

from engine.inspection.where.evidence import WhereResult
from viewer.runtime.places import Place, filtered
from viewer.where.where_model import WhereModel
from viewer.where.work import WhereAnswer, WhereQuery

FOUND = WhereResult("found", 640, "Orders", 0, 3)
ABSENT = WhereResult("neverSeen", None, None, None, None)


def model_with(text="K3", topic="", group="", *results, has_unread=False, is_truncated=False):
    model = WhereModel()
    model.begin(text, topic, group)
    model.end(WhereAnswer(results, is_truncated), has_unread=has_unread)
    return model


def kinds(model):
    return tuple(state.kind if state is not None else None for state in (model.table_state(), model.detail_state()))


def test_nothing_was_searched_yet():
    model = WhereModel()
    assert kinds(model) == ("hint", "hint")
    assert model.detail_state().text == "Nothing was searched yet."
    assert model.command() == []


def test_a_question_is_trimmed_and_only_one_is_asked_at_a_time():
    model = WhereModel()
    assert model.begin("  ") is None
    assert model.begin(" K3 ", " Orders", "payers ") == WhereQuery("K3", "Orders", "payers")
    assert model.begin("K4") is None
    assert kinds(model) == ("loading", None)
    assert model.place() == Place("where", topic="Orders", key="K3", name="payers")


def test_another_store_drops_the_search():
    model = model_with("K3", "", "", FOUND)
    model.describe(FOUND, "It is intact.")
    model.begin("K4")
    model.forget_store()
    assert (model.running, model.results, model.summary, model.question) == (False, (), "", WhereQuery(""))
    assert model.begin("K3") is not None


def test_an_answer_needs_no_second_search():
    model = model_with("K3", "Orders", "", FOUND)
    assert kinds(model) == (None, None)
    assert not model.is_new(WhereQuery("K3", "Orders"))
    assert model.is_new(WhereQuery("K3"))
    assert model.is_new(WhereQuery("K4", "Orders"))
    assert model.head_note() == ""
    assert model_with("K3", "", "", FOUND, FOUND).head_note() == "2 with this name"


def test_the_summary_names_what_was_asked_and_its_verdict():
    model = model_with("K3", "", "", FOUND)
    assert model.describe(FOUND, "It is intact.").startswith("K3: ")
    assert model.summary.endswith(". It is intact.")


def test_a_failed_search_can_be_tried_again_and_leaves_no_old_answer():
    model = model_with("K3", "", "", FOUND)
    model.begin("K3")
    model.fail("The search was stopped.")
    assert (model.running, model.results) == (False, ())
    assert kinds(model) == ("error", "hint")
    assert (model.table_state().text, model.table_state().step) == ("The search was stopped.", "Try again")
    assert model.is_new(WhereQuery("K3"))
    model.begin("K3")
    assert kinds(model) == ("loading", None)


def test_tags_without_an_entry_lead_to_the_filter():
    model = model_with('T#a"b')
    assert model.lacks_tags
    assert model.table_state().step == "Filter the log"
    assert model.detail_state().text == "No message was found for these tags."
    assert model.filter_of_tags() == filtered("only", r'tags = "a\"b"')


def test_more_messages_than_are_listed_are_cut_off():
    state = model_with("K3", "", "", FOUND, FOUND, is_truncated=True).table_state()
    assert (state.kind, state.text.startswith("The first 2 messages of this key.")) == ("cut", True)
    assert model_with("K3", "", "", is_truncated=True).lacks_tags


def test_nothing_is_called_absent_where_files_are_unread():
    assert model_with("K9", "", "", ABSENT).results[0].verdict == "neverSeen"
    assert model_with("K9", "", "", ABSENT, has_unread=True).results[0].verdict == "unknown"


@pytest.mark.parametrize(
    ("question", "command"),
    [
        (("K3",), ["storescope", "where", "STORE", "--json", "--", "K3"]),
        (("K3", "Orders"), ["storescope", "where", "STORE", "--topic", "Orders", "--json", "--", "K3"]),
        (("T#open", "", "g"), ["storescope", "where", "STORE", "--group", "g", "--tag", "--json", "--", "open"]),
    ],
)
def test_the_command_asks_the_same(question, command):
    assert model_with(*question).command() == command
