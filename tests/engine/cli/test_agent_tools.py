"""The tools for agents: they only read, and their bounded answers hold cause and first step of an incident."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import incident_states
import pytest
from handmade_stores import healthy

from engine.cli.agent_tools import BY_NAME, DEFAULT_ROWS, MAX_BYTES, TOOLS, StoreTools
from engine.cli.command_table import COMMANDS
from engine.cli.main import build_parser
from engine.errors import UsageError

VALUES = {
    "id": "O-1",
    "topic": "Orders",
    "queue": 0,
    "key": "O-1",
    "only": "CL01,CQ04",
    "release": "5.3",
    "filter": "size > 100",
    "group": "billing",
    "kind": "delay",
    "kinds": "crash,start",
    "begin": 0,
    "end": 9_999_999_999_999,
    "from_offset": 0,
    "to_offset": 1_000_000,
    "finding": "checkpoint",
    "decoded": True,
    "question": "SELECT topic, queueId FROM units",
}
"""A value for each parameter of a tool."""


def every_call():
    """Yield each tool with its required parameters, and with all."""
    for tool in TOOLS:
        required = {p.name: VALUES[p.name] for p in tool.parameters if p.is_required}
        yield tool.name, required
        yield tool.name, {p.name: VALUES[p.name] for p in tool.parameters if p.name != "decoded"}


def digests(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return healthy().write(tmp_path_factory.mktemp("tools") / "store")


def test_at_most_fifteen_tools_and_each_is_a_command():
    assert len(TOOLS) <= 15
    assert len(BY_NAME) == len(TOOLS)
    assert {tool.command for tool in TOOLS} <= set(COMMANDS)


def test_every_tool_leaves_every_byte_and_time_of_the_store_as_it_is(store):
    tools, before = StoreTools(str(store)), digests(store.parent)
    for name, values in every_call():
        answer = tools.call(name, values).fields()
        assert json.loads(json.dumps(answer)) == answer, name
    assert digests(store.parent) == before


@pytest.mark.parametrize("value", ["--apply", "--yes", "--to=elsewhere", "-o", "--output=x", "--undo", "--", "-"])
def test_no_value_becomes_an_option(value):
    for tool in TOOLS:
        values = {p.name: value for p in tool.parameters if p.schema.get("type") == "string" and "enum" not in p.schema}
        values |= {p.name: 0 for p in tool.parameters if p.is_required and p.schema.get("type") == "integer"}
        try:
            args = build_parser(tool.command).parse_args(tool.command_line("STORE", values))
        except UsageError:
            continue
        assert args.store == "STORE"
        for option in ("apply", "yes", "to", "output", "undo", "save", "overwrite"):
            assert not getattr(args, option, None) or tool.command in {"units", "queue"}, (tool.name, option)


def test_a_plan_is_always_asked_as_a_plan():
    for name in ("recovery_plan", "repair_plan"):
        args = build_parser(BY_NAME[name].command).parse_args(BY_NAME[name].command_line("STORE", {}))
        assert args.plan
        assert not args.apply


def test_rows_are_bounded_and_the_answer_says_where_to_go_on(store):
    tools = StoreTools(str(store))
    first = tools.call("units", {"rows": 2})
    assert len(first.records) == 2
    assert first.partial == ["further rows are left out for rows: ask again with skip 2, or narrow the question"]
    second = tools.call("units", {"rows": 2, "skip": 2})
    assert second.records[0]["physicalOffset"] > first.records[-1]["physicalOffset"]
    complete = tools.call("units", {"rows": 500})
    assert (complete.partial, complete.closing["complete"]) == ([], True)
    assert complete.records[2:4] == second.records
    assert complete.exit_code == 0


def test_bytes_are_bounded_also_of_one_row(store):
    tools = StoreTools(str(store))
    answer = tools.call("sql", {"question": "SELECT repeat('x', 9000) AS text FROM range(100)"})
    assert len(json.dumps(answer.records)) <= MAX_BYTES + 2_000
    assert 0 < len(answer.records) < DEFAULT_ROWS
    assert any("bytes" in reason for reason in answer.partial)
    assert any("texts of more than 4,000 characters are cut" in reason for reason in answer.partial)
    listed = tools.call("sql", {"question": "SELECT list(repeat('x', 100)) AS texts FROM range(100000)"})
    assert len(json.dumps(listed.fields())) <= MAX_BYTES + 2_000
    assert any("lists" in reason for reason in listed.partial)


def test_masked_tools_hide_it_or_are_not_there(store):
    from engine.rules.masking import Masking

    tools = StoreTools(str(store), (), Masking.of("keys"))
    names = {tool.name for tool in tools.tools()}
    assert names == {"check", "units", "waiting"}
    assert "O-1" not in json.dumps([tools.call(name, {}).fields() for name in names])
    with pytest.raises(UsageError, match="there is no tool sql"):
        tools.call("sql", {"question": "SELECT keys FROM units"})


def test_a_call_that_is_stopped_ends_and_says_so(store):
    class Stopped:
        def is_set(self):
            return True

    answer = StoreTools(str(store)).call("units", {}, Stopped())
    assert re.fullmatch(r"the call was ended after \d+ s; narrow the question", answer.partial[0])


def test_what_could_not_be_read_is_a_row_and_a_note(store, tmp_path):
    new_store = healthy().write(tmp_path / "store")
    queue = next((new_store / "consumequeue").glob("*/*/*"))
    queue.unlink()
    queue.symlink_to(tmp_path / "gone")
    answer = StoreTools(str(new_store)).call("check", {})
    assert "unreadable" in {record["type"] for record in answer.records}
    assert any("do not conclude" in note for note in answer.notes)
    assert not answer.closing["complete"]


INCIDENTS = [
    incident_states.hole,
    incident_states.tail_not_dispatched,
    incident_states.tail_of_next_to_last_file,
    incident_states.pages_of_queues_lost,
    incident_states.pages_lost_and_closed,
    incident_states.queue_folder_lost,
    incident_states.index_behind_the_checkpoint,
    incident_states.magic_code_lost,
    incident_states.tail_of_log_zero,
    incident_states.middle_file_lost,
    incident_states.empty_log_file,
    incident_states.name_that_is_no_number,
    incident_states.index_files_turned_round,
]
CHANGES_NOTHING = re.compile(
    r"^storescope (snapshot|recover \S+ --plan|dispatch \S+ --to|repair \S+ --(to|plan)|\w+ \S+)"
)


@pytest.mark.golden
@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("state", INCIDENTS, ids=lambda state: state.__name__)
def test_the_check_of_an_incident_holds_its_cause_and_a_safe_first_step(golden, tmp_path, state):
    root = incident_states.build(golden("broker-orders"), tmp_path / "store", state)
    answer = StoreTools(str(root)).call("check", {})
    incident = answer.closing["incident"]
    assert incident["whatHappened"].endswith(".")
    step = incident["firstSteps"][0]
    assert step["text"]
    assert step["command"] is None or CHANGES_NOTHING.match(step["command"]), step
    assert "--apply" not in (step["command"] or "")
    assert any(record["file"] and record["severity"] in {"warn", "error"} for record in answer.records)
