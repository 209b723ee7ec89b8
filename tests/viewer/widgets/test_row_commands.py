from __future__ import annotations

import re
from pathlib import Path

import pytest

import viewer
from viewer.widgets.row_commands import (
    BY_ID,
    NEEDS_STORE,
    ONLY_IN,
    PARTS,
    PARTS_OF,
    ROW_COMMANDS,
    Facts,
    mqadmin,
    row_commands_of,
    sought,
)

ALL = Facts(
    "unit", "queueOffset", object(), 4096, 300, "Orders", 2, 7, "K1", "", "x = 1", None, "storescope", frozenset()
)


def test_every_kind_of_row_has_its_menu():
    """The sources name the kinds: a new table cannot come without a menu."""
    sources = [path.read_text("utf-8") for path in Path(viewer.__file__).parent.rglob("*.py")]
    named = {name for text in sources for name in re.findall(r'RecordKind\(\s*"(\w+)"', text)}
    assert len(named) > 25
    assert named <= set(PARTS_OF)


@pytest.mark.parametrize("kind", sorted(PARTS_OF))
def test_deeds_stand_in_one_order_everywhere(kind):
    parts = [PARTS.index(command.part) for command in row_commands_of(kind)]
    assert parts == sorted(parts)
    assert {"copy.cell", "copy.row", "explain.field", "go.link"} <= {command.id for command in row_commands_of(kind)}


def test_a_message_can_be_followed_kept_copied_and_exported():
    ids = [command.id for command in row_commands_of("unit")]
    assert ids == [
        "go.link",
        "go.own",
        "go.log",
        "go.entry",
        "follow.trace",
        "follow.where",
        "follow.conversation",
        "follow.next",
        "keep.bookmark",
        "keep.mark",
        "keep.colour",
        "copy.cell",
        "copy.row",
        "copy.json",
        "copy.cli",
        "copy.mqadmin",
        "bytes.export",
        "edit.remove",
        "edit.cut",
        "explain.body",
        "explain.field",
    ]
    assert {"copy.markdown", "copy.step"} <= {command.id for command in row_commands_of("finding")}


@pytest.mark.parametrize("command", ROW_COMMANDS, ids=lambda command: command.id)
def test_an_impossible_command_has_a_reason(command):
    assert set(ONLY_IN) <= set(BY_ID)
    assert set(BY_ID) >= NEEDS_STORE
    reason = command.without(Facts("unit"))
    assert reason == "" or reason.endswith("."), command.id
    assert command.id in {"copy.cell", "copy.row", "copy.json", "copy.markdown"} or reason, (
        "nothing is known of this row"
    )


def test_a_command_of_the_log_is_offered_where_it_is_or_where_the_unit_is_known():
    assert BY_ID["follow.next"].without(ALL) == BY_ID["keep.mark"].without(ALL) == ""
    assert BY_ID["follow.next"].without(Facts("cq", key="K1")).endswith("in the log.")
    able = Facts("unit", key="K1", able=frozenset({"same.key.next"}))
    assert BY_ID["follow.next"].without(able) == ""


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        (ALL, "mqadmin queryMsgByOffset -n NAMESRV:9876 -b BROKER -t Orders -i 2 -o 7"),
        (
            Facts("indexEntry", topic="Or ders", key="K 1"),
            "mqadmin queryMsgByKey -n NAMESRV:9876 -t 'Or ders' -k 'K 1'",
        ),
        (
            Facts("groupProgress", topic="Orders", group="billing"),
            "mqadmin consumerProgress -n NAMESRV:9876 -g billing",
        ),
        (Facts("space", topic="Orders"), "mqadmin topicStatus -n NAMESRV:9876 -t Orders"),
        (Facts("file"), ""),
    ],
)
def test_the_brokers_own_command_shows_the_same(facts, command):
    assert mqadmin(facts) == command


def test_a_message_is_sought_by_the_best_that_is_known_of_it():
    assert sought(ALL) == "K1"
    assert sought(Facts("cq", offset=9, topic="T", queue_id=0, queue_offset=5)) == "T/0/5"
    assert sought(Facts("position", offset=9)) == "9"
