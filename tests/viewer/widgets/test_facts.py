"""Facts keep their lines when only their texts change; other facts are laid out anew."""

from __future__ import annotations

from viewer.widgets.basics import ElidedLine
from viewer.widgets.facts import Fact, Facts


def test_lines_stay_where_only_texts_change(qtbot) -> None:
    facts = Facts()
    qtbot.addWidget(facts)
    facts.show_facts([Fact("wrote", "1 B", "+1 B/s"), Fact("to flush", "2 B")])
    lines = [facts._lines.itemAt(n).widget() for n in range(2)]
    facts.show_facts([Fact("wrote", "3 B", "+9 B/s"), Fact("to flush", "4 B")])
    assert [facts._lines.itemAt(n).widget() for n in range(2)] == lines
    assert facts.texts() == ["wrote: 3 B +9 B/s", "to flush: 4 B"]
    assert [label.text() for label in facts._labels[0]] == ["3 B", "+9 B/s"]
    assert "4 B" in facts.accessibleDescription()
    facts.show_facts([Fact("wrote", "3 B", role="error"), Fact("to flush", "4 B")])
    assert facts._lines.itemAt(0).widget() is not lines[0]


def test_places_and_long_values_are_lines_too(qtbot) -> None:
    facts = Facts()
    qtbot.addWidget(facts)
    facts.show_facts(
        [Fact("unit", "12", place="log:12"), Fact("id", "x" * 60), Fact("", "words that wrap", code=False)]
    )
    other_words = Fact("", "other words", code=False)
    facts.show_facts([Fact("unit", "13", place="log:13"), Fact("id", "y" * 60), other_words])
    emitted = []
    facts.placeRequested.connect(emitted.append)
    facts._labels[0][0].clicked.emit()
    assert emitted == ["log:13"]
    assert facts.texts()[2] == ": other words"


def test_a_long_name_is_seen(qtbot):
    """A path of a file stood in no room at all: what stretches behind the line took it."""
    facts = Facts()
    qtbot.addWidget(facts)
    path = "/srv/rocketmq/store/commitlog/" + "0" * 20
    facts.show_facts([Fact("File", path), Fact("Found", "tea")])
    facts.resize(400, 60)
    facts.show()
    (shown,) = facts.findChildren(ElidedLine)
    assert shown.width() > 200
