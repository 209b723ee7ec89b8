"""The form of a trace: the meaning of its fields, and invalid input."""

from __future__ import annotations

import pytest

from viewer.index.trace_form import TraceForm


@pytest.fixture
def form(qtbot):
    trace_form = TraceForm()
    qtbot.addWidget(trace_form)
    trace_form.show_question("Orders", "K1")
    return trace_form


def test_fields_make_a_request(form):
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
    ("field", "text", "message"),
    [
        ("begin", "yesterday or so", "Expected a time such as"),
        ("most", "0", "Expected a number from 1 to 1,000,000."),
        ("most", "many", "Expected a number from 1 to 1,000,000."),
    ],
)
def test_an_invalid_field_is_marked_with_a_reason(form, field, text, message):
    part = getattr(form, field)
    part.setText(text)
    assert form.question() is None
    assert part.property("state") == "error"
    assert message in part.toolTip()
    part.setText("")
    assert form.question() is not None
    assert part.property("state") == ""


def test_another_store_begins_with_empty_fields(form):
    form.clear()
    assert [form.topic.text(), form.key.text(), form.most.text()] == ["", "", ""]


def test_all_errors_are_listed_below_the_fields(form):
    """An empty topic had a red frame with its message only in a tooltip, and a From of "K1" was not checked."""
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


def test_tags_have_their_own_option(form):
    """Trace and chain supported keys only: the tag entries that 5.4 writes were shown as collisions."""
    form.show_question("Orders", "T#paid")
    question = form.question()
    assert (question.key, question.index_type, question.text) == ("paid", "T", "Orders#T#paid")
    form.show_question("Orders", "K1")
    question = form.question()
    assert (question.key, question.index_type, question.text) == ("K1", None, "Orders#K1")
    form.index_type.setCurrentIndex(form.index_type.findData("U"))
    form.show_question("Orders", "K1")
    assert form.question().index_type == "U"
