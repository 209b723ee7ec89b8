"""Answers to a put, in words."""

from __future__ import annotations

from engine.store.put.message import PutMessageStatus
from viewer.lab.fed import answer_facts
from viewer.lab.put_words import MEANINGS


def test_answers_stand_in_words_and_what_was_refused_is_marked() -> None:
    facts = answer_facts({"OS_PAGE_CACHE_BUSY": 12, "PUT_OK": 3, "FLUSH_DISK_TIMEOUT": 1_200, "UNKNOWN_ERROR": 0})
    assert [(fact.value, fact.role) for fact in facts] == [
        ("PUT_OK 3", "ok"), ("FLUSH_DISK_TIMEOUT 1,200", "warn"), ("OS_PAGE_CACHE_BUSY 12", "warn"),
    ]  # fmt: skip
    assert facts[2].note == "not stored: a put has held the log for too long"
    assert set(MEANINGS) <= {status.name for status in PutMessageStatus}
