"""Put results counted by status, and the shares of a topic's queues."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from engine.lab.samples import TopicPutCounts
from viewer.lab.put_statistics import PutStatisticsPanel


def test_the_chosen_topic_stays_while_others_grow(qapp: QApplication) -> None:
    panel = PutStatisticsPanel()
    assert panel.words.text() == "No queue has an entry yet."
    panel.show_topics((TopicPutCounts("A", ((0, 10), (1, 10))), TopicPutCounts("B", ((0, 3),))))
    assert panel.words.text() == "20 entries in 2 queues · evenly filled: 1.00 to 1.00 × the mean"
    panel.topic.setCurrentIndex(1)
    assert panel.words.text() == "3 entries in 1 queue"
    panel.show_topics((TopicPutCounts("B", ((0, 30), (1, 10))), TopicPutCounts("A", ((0, 10), (1, 10)))))
    assert panel.topic.currentText() == "B"
    assert panel.bars.bars == (("0", 30), ("1", 10))
    panel.show_answers({"PUT_OK": 1})
    assert panel.answers.texts() == [": PUT_OK 1 stored as it should be"]
    panel.deleteLater()
