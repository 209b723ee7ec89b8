"""Answers counted by status, and the queues of a topic weighed."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from engine.lab.samples import TopicFed
from engine.store.put.message import PutMessageStatus
from viewer.lab.fed import FedPanel, answer_facts
from viewer.lab.put_words import MEANINGS


def test_answers_stand_in_words_and_what_was_refused_is_marked() -> None:
    facts = answer_facts({"OS_PAGE_CACHE_BUSY": 12, "PUT_OK": 3, "FLUSH_DISK_TIMEOUT": 1_200, "UNKNOWN_ERROR": 0})
    assert [(fact.value, fact.role) for fact in facts] == [
        ("PUT_OK 3", "ok"), ("FLUSH_DISK_TIMEOUT 1,200", "warn"), ("OS_PAGE_CACHE_BUSY 12", "warn"),
    ]  # fmt: skip
    assert facts[2].note == "not stored: a put has held the log for too long"
    assert set(MEANINGS) <= {status.name for status in PutMessageStatus}


def test_the_chosen_topic_stays_while_others_grow(qapp: QApplication) -> None:
    panel = FedPanel()
    assert panel.words.text() == "No queue has an entry yet."
    panel.show_fed((TopicFed("A", ((0, 10), (1, 10))), TopicFed("B", ((0, 3),))))
    assert panel.words.text() == "20 entries in 2 queues · evenly fed: 1.00 to 1.00 × the mean"
    panel.topic.setCurrentIndex(1)
    assert panel.words.text() == "3 entries in 1 queue"
    panel.show_fed((TopicFed("B", ((0, 30), (1, 10))), TopicFed("A", ((0, 10), (1, 10)))))
    assert panel.topic.currentText() == "B"
    assert panel.bars.bars == (("0", 30), ("1", 10))
    panel.show_answers({"PUT_OK": 1})
    assert panel.answers.texts() == [": PUT_OK 1 stored as it should be"]
    panel.deleteLater()
