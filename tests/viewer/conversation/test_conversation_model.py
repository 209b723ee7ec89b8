"""What the view says of a step: words, gaps, changes, and the state of the table."""

from __future__ import annotations

from engine.inspection.conversation import PropertyChange
from viewer.conversation.conversation_model import (
    ConversationModel,
    body_lines,
    change_texts,
    gap_text,
    step_facts,
    step_heading,
)
from viewer.conversation.conversation_work import ConversationAnswer, ConversationQuery, ConversationRow
from viewer.runtime.places import Place


def row(number: int = 1, **fields) -> ConversationRow:
    values = {"step": "plain", "message": 1, "time": 1_700_000_000_000, "gap_ms": None, "physical_offset": 7} | fields
    return ConversationRow(number, **values)


def answer(*rows: ConversationRow, is_truncated: bool = False, has_unread: bool = False) -> ConversationAnswer:
    return ConversationAnswer(rows, (), 1500, is_truncated, has_unread)


def test_a_gap_has_a_sign_because_a_clock_may_be_set_back() -> None:
    assert gap_text(row()) == ""
    assert gap_text(row(gap_ms=12)) == "+12 ms"
    assert gap_text(row(gap_ms=-12)) == "−12 ms"


def test_changes_name_the_property_and_its_new_value() -> None:
    changes = (PropertyChange("REAL_QID", "2", None), PropertyChange("note", None, "x" * 200))
    assert change_texts(row(changes=changes))[0] == "REAL_QID removed"
    assert change_texts(row(changes=changes))[1].startswith("note = xxx")
    assert len(change_texts(row(changes=changes))[1]) < 100


def test_the_heading_has_number_time_gap_and_step() -> None:
    heading = step_heading(row(3, step="retry", gap_ms=1100))
    assert heading.startswith("3 · ")
    assert heading.endswith("+1.1 s · delivered again")


def test_a_bad_crc_and_a_repeated_body_are_said() -> None:
    assert "The body's CRC does not match: the body is damaged." in step_facts(row(has_bad_crc=True, size=10))
    assert body_lines(row(same_body=1)) == "the same body as in step 1"
    assert body_lines(row(text="{}")) == "{}"


def test_the_summary_says_what_is_left_out() -> None:
    model = ConversationModel()
    assert model.summary() == ""
    model.end(answer(row(size=10), row(2, step="event", message=0)))
    assert model.summary() == "1 message · 1 unit · 1.5 s"
    model.end(answer(row(size=10), is_truncated=True, has_unread=True))
    assert "only the newest messages" in model.summary()
    assert "could not be read" in model.summary()


def test_an_empty_table_says_why() -> None:
    model = ConversationModel()

    def state() -> tuple[str, str]:
        table_state = model.table_state()
        assert table_state is not None
        return table_state.kind, table_state.text

    assert state()[0] == "hint"
    assert model.begin("  ") is None
    assert model.begin(" K1 ", "Orders") == ConversationQuery("K1", "Orders")
    assert model.begin("K2") is None, "one search at a time"
    assert state()[0] == "loading"
    model.fail("the disk")
    assert state() == ("error", "the disk")
    model.end(answer())
    assert state() == ("empty", "No unit of this store has this name.")
    model.end(answer(has_unread=True))
    assert state() == ("unread", "No unit with this name is in what could be read.")
    model.end(answer(row()))
    assert model.table_state() is None
    assert model.place() == Place("conversation", topic="Orders", key="K1")
    assert model.command() == ["storescope", "conversation", "STORE", "--topic", "Orders", "--events", "--", "K1"]
    assert not model.is_new(ConversationQuery("K1", "Orders"))
    model.forget_store()
    assert model.command() == []
