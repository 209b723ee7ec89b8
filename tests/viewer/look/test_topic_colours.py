"""Topic colours belong to a store. The mark before a topic's name is never hollow."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QWidget

from viewer.look.topic_colours import PLACES, TopicColours, colours_of
from viewer.widgets.columns import RecordKind, topic_column
from viewer.widgets.record_table import RecordTable


def test_eight_largest_topics_have_a_colour_and_system_topics_none(themed_app: QApplication) -> None:
    colours = TopicColours()
    colours.offer(["%RETRY%billing", *(f"topic-{n}" for n in range(10)), "RMQ_SYS_TRANS_HALF_TOPIC"])
    assert [colours.color(f"topic-{n}") is not None for n in range(10)] == [True] * 8 + [False] * 2
    assert colours.color("%RETRY%billing") is None
    assert colours.color("") is None


def test_topics_that_overtake_each_other_keep_their_colours(themed_app: QApplication) -> None:
    colours, reports = TopicColours(), []
    colours.offer(["B1", "B2", "B3"])
    colours.changed.connect(lambda: reports.append(1))
    colours.offer(["B2", "B1", "B3"])
    assert not reports
    colours.offer(["B4", "B2", "B1"])
    assert colours.order[:3] == ("B1", "B2", "B4")
    colours.offer([f"C{n}" for n in range(7)] + ["B2"])
    assert colours.order[1] == "B2", "who stays among the eight keeps his colour"
    assert sorted(colours.order) == ["B2", *(f"C{n}" for n in range(7))]


def test_a_log_without_queues_has_the_colours_of_its_topics(themed_app: QApplication) -> None:
    colours = TopicColours()
    colours.fill(["B", "%RETRY%b", "A"])
    colours.fill(["C", "A"])
    assert colours.order[:4] == ("B", "A", "C", "")
    colours.offer([f"topic-{n}" for n in range(8)])
    assert set(colours.order) == {f"topic-{n}" for n in range(8)}, "what the queues tell goes before"


def test_the_first_of_two_linked_stores_sets_the_order(themed_app: QApplication) -> None:
    leader, follower, independent = TopicColours(), TopicColours(), TopicColours()
    leader.offer(["A", "B", "C"])
    for colours in (follower, independent):
        colours.offer(["C", "X", "A", "Y"])
    follower.follow(leader)
    assert follower.color("A") == leader.color("A")
    assert follower.color("C") == leader.color("C")
    assert follower.order == ("A", "", "C", "X", "Y", "", "", ""), "B's colour stays free"
    assert independent.color("C") == leader.color("A"), "a store that is not tied has its own order"
    leader.offer(["A", "B", "C", "Y"])
    assert follower.color("Y") == leader.color("Y")
    third_store = TopicColours()
    third_store.offer([f"O{n}" for n in range(PLACES)])
    third_store.follow(leader)
    assert all(third_store.color(f"O{n}") for n in range(PLACES)), "a store with other topics has colours too"


def test_a_widget_finds_the_colours_of_the_nearest_store_around_it(themed_app: QApplication) -> None:
    class ColouredWidget(QWidget):
        topic_colours: TopicColours | None = None

    window, child = ColouredWidget(), QWidget()
    view = ColouredWidget(window)
    child.setParent(view)
    assert colours_of(child).color("A") is None
    window.topic_colours = TopicColours()
    assert colours_of(child) is window.topic_colours
    view.topic_colours = TopicColours()
    assert colours_of(child) is view.topic_colours


def test_the_kind_is_in_the_tooltip_and_for_screen_readers(themed_app: QApplication) -> None:
    table = RecordTable(RecordKind("rows", (topic_column(),)))
    table.set_rows([{"topic": "%RETRY%billing"}, {"topic": "Orders"}])
    assert table.data(table.index(0, 0), 3) == "%RETRY%billing, retry topic"
    assert "retry topic" in str(table.data(table.index(0, 0), 11))
    assert table.data(table.index(1, 0), 3) == "Orders"
