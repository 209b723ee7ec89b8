"""The operation log: commands as they are run, with the equal command line."""

from __future__ import annotations

from functools import partial

from PySide6.QtGui import QAction

from viewer.runtime import places
from viewer.runtime.command_line import command_line
from viewer.shell import operation_log as operations
from viewer.shell.commands import BY_ID, COMMANDS
from viewer.shell.operation_log import Operations
from viewer.shell.views import BY_COMMAND


def give(log: Operations, *names: str) -> None:
    """Run these commands."""
    for name in names:
        action = QAction(name)
        action.setObjectName(name)
        log.listen(action, BY_ID[name].cli)
        action.trigger()


def test_commands_are_logged_with_their_command_line(qtbot) -> None:
    log = Operations(partial(command_line, path="/a store"))
    give(log, "check.run", "view.queues", "zoom.in")
    log.note(
        "filter.apply", "Apply", {"filter": "size > 3", "empty": ""}, "storescope units '/a store' --where 'size > 3'"
    )
    log.note_go_to("Topic/0/1", "Go to")
    log.note_go_to("  ", "Go to")
    assert [finding.id for finding in log.list] == ["check.run", "view.queues", "zoom.in", "filter.apply", "go.to"]
    assert log.script().splitlines() == [
        "storescope check '/a store'",
        "storescope view '/a store' --at queue",
        "storescope units '/a store' --where 'size > 3'",
        "storescope view '/a store' --at Topic/0/1",
    ]
    assert log.list[3].shown == "filter=size > 3"


def test_without_a_store_there_is_no_command_line_and_the_log_is_bounded(qtbot, monkeypatch) -> None:
    log = Operations(lambda _words: "")
    reports = []
    log.operationAdded.connect(lambda: reports.append(1))
    for number in range(operations.MAX_OPERATIONS + 5):
        log.note("zoom.in", str(number), {}, "")
    assert len(log.list) == operations.MAX_OPERATIONS
    assert log.script() == ""
    log.clear()
    assert not log.list
    assert len(reports) == operations.MAX_OPERATIONS + 6


NO_VIEW = {
    "view.inspector": "a part of the log's side, kept with the layout",
    "view.histogram": "a part of the Log and Queues views, kept with the settings",
    "view.tree": "a part of the window, kept with the layout",
    "view.follow": "a state of the view in front",
    "view.operations": "this log itself",
    "view.refresh": "a look again; every start looks",
}
"""Commands beside those that open a view, and why they have no command line."""


def test_every_view_that_can_be_opened_has_its_equal_command_line(qtbot) -> None:
    """Opening the lab, "where is my message" or the bookmarks left no command line, because the list of views was a
    copy.
    """
    named = {command.id for command in COMMANDS if command.id.startswith("view.")}
    assert named == BY_COMMAND.keys() | NO_VIEW.keys()
    log = Operations(partial(command_line, path="/store"))
    give(log, *BY_COMMAND)
    assert {operation.id for operation in log.list if operation.cli} == BY_COMMAND.keys()
    for logged in log.list:
        *command, last_word = logged.cli.split()
        if command == ["storescope", "view", "/store", "--at"]:
            results = places.parse(last_word)
            assert getattr(results, "view", "") == BY_COMMAND[logged.id].kind, logged.cli
        else:
            assert [*command, last_word] == ["storescope", BY_COMMAND[logged.id].cli, "/store"]
