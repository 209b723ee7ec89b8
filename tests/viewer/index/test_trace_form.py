"""The question of a trace: what the fields mean, and which of them cannot be understood."""

from __future__ import annotations

import pytest

from viewer.index.trace_form import TraceForm


@pytest.fixture
def form(qtbot):
    trace_form = TraceForm()
    qtbot.addWidget(trace_form)
    trace_form.show_question("Orders", "K1")
    return trace_form


def test_fields_make_a_question(form):
    form.show_window(1_700_000_000_000, 1_700_000_060_000)
    form.most.setText("5")
    question = form.question()
    assert (question.topic, question.key, question.begin, question.end) == (
        "Orders",
        "K1",
        1_700_000_000_000,
        1_700_000_060_000,
    )
    emitted = []
    form.traceRequested.connect(emitted.append)
    form.ask()
    assert emitted == [question]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("begin", "yesterday or so", "Expected a time such as"),
        ("most", "0", "Expected a number from 1 to 1,000,000."),
        ("most", "many", "Expected a number from 1 to 1,000,000."),
    ],
)
def test_a_field_that_cannot_be_understood_is_marked_and_says_why(form, field, text, said):
    part = getattr(form, field)
    part.setText(text)
    assert form.question() is None
    assert part.property("state") == "error"
    assert said in part.toolTip()
    part.setText("")
    assert form.question() is not None
    assert part.property("state") == ""


def test_another_store_asks_nothing(form):
    form.clear()
    assert [form.topic.text(), form.key.text(), form.most.text()] == ["", "", ""]


def test_everything_that_is_wrong_is_said_below_the_fields(form):
    """An empty topic had a red frame whose words stood in a tool tip only, and a From of "K1" was not looked at."""
    form.topic.clear()
    form.begin.setText("K1")
    assert form.question() is None
    assert not form._fault.isHidden()
    assert "Name the topic" in form._fault.text()
    assert "From: Expected a time" in form._fault.text()
    assert [part.property("state") for part in (form.topic, form.begin, form.end)] == ["error", "error", ""]
    form.show_question("Orders", "K1")
    assert form.question() is not None
    assert form._fault.isHidden()


def test_tags_are_asked_for_by_their_own_choice(form):
    """Trace and chain knew keys only: the entries of tags that 5.4 writes were called collisions."""
    form.show_question("Orders", "T#paid")
    question = form.question()
    assert (question.key, question.index_type, question.text) == ("paid", "T", "Orders#T#paid")
    form.show_question("Orders", "K1")
    question = form.question()
    assert (question.key, question.index_type, question.text) == ("K1", None, "Orders#K1")
    form.index_type.setCurrentIndex(form.index_type.findData("U"))
    form.show_question("Orders", "K1")
    assert form.question().index_type == "U"
