"""The operation log: commands as they are given, with the command line that does the same."""

from __future__ import annotations

from PySide6.QtGui import QAction

from viewer.bridge import operations
from viewer.bridge.operations import Operations


def test_commands_are_noted_with_their_command_line(qtbot) -> None:
    log = Operations(lambda: "/a store")
    actions = {name: QAction(name) for name in ("check.run", "view.queues", "list.next", "zoom.in")}
    log.listen(actions)
    for action in actions.values():
        action.trigger()
    log.note(
        "filter.apply", "Apply", {"filter": "size > 3", "empty": ""}, "storescope units '/a store' --where 'size > 3'"
    )
    log.went("Topic/0/1", "Go to")
    log.went("  ", "Go to")
    assert [one.id for one in log.list] == ["check.run", "view.queues", "zoom.in", "filter.apply", "go.to"]
    assert log.script().splitlines() == [
        "storescope check '/a store'",
        "storescope view '/a store' --at queue",
        "storescope units '/a store' --where 'size > 3'",
        "storescope view '/a store' --at Topic/0/1",
    ]
    assert log.list[3].shown == "filter=size > 3"


def test_without_a_store_there_is_no_command_line_and_the_log_is_bounded(qtbot, monkeypatch) -> None:
    log = Operations(lambda: "")
    told = []
    log.noted.connect(lambda: told.append(1))
    for number in range(operations.LONGEST + 5):
        log.note("zoom.in", str(number), {}, "")
    assert len(log.list) == operations.LONGEST
    assert log.script() == ""
    log.clear()
    assert not log.list
    assert len(told) == operations.LONGEST + 6
