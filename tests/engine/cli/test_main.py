"""The command line itself: usage, numbers, ends, pipes, interrupts, completion, and mqadmin's own names and options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import agree
import made_stores
import pytest

from engine.cli.commands.mqadmin import moment

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path):
    """A small healthy store."""
    return made_stores.healthy().write(tmp_path / "store")


def start(*arguments, **how):
    """The command as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *map(str, arguments)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how,
    )  # fmt: skip


USAGE = [
    pytest.param(["nonsense"], "invalid choice: 'nonsense'", id="unknown command"),
    pytest.param(["info"], "the following arguments are required: STORE", id="no store"),
    pytest.param(["info", "STORE", "--nonsense"], "unrecognized arguments: --nonsense", id="unknown option"),
    pytest.param(["info", "STORE", "more"], "unrecognized arguments: more", id="one word too many"),
    pytest.param(["units", "STORE", "--limit", "x"], "expected a number", id="no number"),
    pytest.param(["units", "STORE", "--limit", "0"], "expected a number from 1 on", id="a limit of nothing"),
    pytest.param(["units", "STORE", "--limit"], "expected one argument", id="an option without its value"),
    pytest.param(["units", "STORE", "--from", "99999999999999999999"], "within 64 bits", id="beyond 64 bits"),
    pytest.param(["units", "STORE", "--where", "size >"], "filter", id="a filter that ends too early"),
    pytest.param(["offset", "STORE", "Orders", "0"], "--time", id="a missing option"),
    pytest.param(["offset", "STORE", "Orders", "0", "--time", "1", "--boundary", "x"], "invalid choice", id="a choice"),
    pytest.param(["units", "STORE", "--mask", "keys,names"], "found 'names'", id="a word that masks nothing"),
    pytest.param(["recover", "STORE"], "--plan", id="recover without a plan"),
    pytest.param(["check", "STORE", "--fail-on", "panic"], "invalid choice", id="an unknown severity"),
    pytest.param(["get", "STORE", "Orders", "0", "0", "--sql", "a ="], "", id="half an SQL expression"),
    pytest.param(["completion", "tcsh"], "invalid choice", id="an unknown shell"),
    pytest.param(["queryCq", "-s", "STORE", "-t", "Orders"], "-q", id="mqadmin's required options"),
]


@pytest.mark.parametrize(("arguments", "said"), USAGE)
def test_wrong_usage_is_one_line_and_exit_2(store, arguments, said):
    status, out, err = agree.command(*(store if word == "STORE" else word for word in arguments))
    assert (status, out) == (2, "")
    assert err.startswith("storescope: ")
    assert err.count("\n") == 1
    assert said in err


NUMBERS = ["144", "0x90", "0b10010000", "1_4_4", " 144 "]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_as_people_write_them(store, text):
    first = agree.ask("units", store, "--from", text, "--limit", 1)[0]
    assert first["physicalOffset"] == 144


def test_keys_may_begin_with_a_dash_behind_two(tmp_path):
    made = made_stores.MadeStore()
    made.put("Orders", keys="-x --json")
    path = made.write(tmp_path / "store")
    for key in ("-x", "--json"):
        for arguments in (["trace", path, "Orders", "--json", "--", key], ["where", path, "--json", "--", key]):
            status, out, err = agree.command(*arguments)
            assert (status, err) == (0, ""), arguments
            assert all(json.loads(line) for line in out.splitlines())
    status, _, err = agree.command("queryMsgByKey", "-s", path, "-t", "Orders", "-k=-x", "--json")
    assert (status, err) == (0, "")


def test_help_and_version_on_every_level():
    for arguments in (["--help"], ["--version"], ["units", "--help"], ["queryCq", "--help"], ["snapshot", "--help"]):
        with start(*arguments) as process:
            out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert out
    with start() as process:
        assert b"usage" in process.communicate(timeout=60)[0]
    assert process.returncode == 2


def test_output_to_a_closed_pipe_ends_quietly(tmp_path):
    made = made_stores.MadeStore(log_size=1 << 22)
    for _ in range(4000):
        made.put(body=b"x" * 200, keys="k")
    path = made.write(tmp_path / "store", index=False, queues=False)
    for arguments in (["units", path, "--json"], ["units", path], ["units", path, "--markdown"], ["units", "--help"]):
        process = start(*arguments)
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
        process.stderr.close()


def test_records_come_as_they_are_found(tmp_path):
    """A reader of the stream has the first unit before the last one is read."""
    made = made_stores.MadeStore(log_size=1 << 22)
    for _ in range(4000):
        made.put(body=b"x" * 200)
    path = made.write(tmp_path / "store", index=False, queues=False)
    process = start("units", path, "--json")
    first = json.loads(process.stdout.readline())
    assert first["type"] == "unit"
    assert process.poll() is None  # it waits for us to take more: the pipe holds a part of the records only
    rest = process.stdout.read().splitlines()
    assert json.loads(rest[-1])["units"] == 4000
    assert process.wait(60) == 0
    process.stdout.close()
    process.stderr.close()


def test_an_interrupt_ends_at_once_with_130(tmp_path):
    made = made_stores.MadeStore(log_size=1 << 22)
    for _ in range(4000):
        made.put(body=b"x" * 200)
    path = made.write(tmp_path / "store", index=False, queues=False)
    process = start("units", path, "--json")
    process.stdout.readline()
    time.sleep(0.2)  # it stands still: nobody takes what it writes
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.wait(30) == 130
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()


def test_an_interrupted_snapshot_leaves_nothing(tmp_path):
    path = made_stores.healthy().write(tmp_path / "store")
    big = path / "commitlog" / f"{1 << 40:020d}"
    with big.open("wb") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
    process = start("snapshot", path, tmp_path / "copy")
    while not (tmp_path / "copy").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code = process.wait(60)
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()
    assert code == 0 or (code == 130 and not (tmp_path / "copy").exists())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell):
    status, out, err = agree.command("completion", shell)
    assert (status, err) == (0, "")
    for word in ("info", "units", "queryMsgByKey", "where"):
        assert word in out
    if shell == "bash":
        check = "complete -p storescope; COMP_WORDS=(storescope units --li); COMP_CWORD=2; "
        check += "_storescope; echo ${COMPREPLY[@]}"
        said = subprocess.run(["bash", "-c", out + check], capture_output=True, text=True, check=True).stdout
        assert "-F _storescope" in said
        assert said.endswith("--limit\n")


# -- mqadmin's names


def test_mqadmin_options_are_spelt_as_mqadmin_spells_them(store):
    unit = agree.ask("units", store, "--topic", "Orders", "--limit", 1)[0]
    place = ["-t", "Orders"]
    for arguments in (
        ["queryMsgByKey", *place, "-k", unit["keys"][0]],
        ["queryMsgByKey", "--topic", "Orders", "--msgKey", unit["keys"][0]],
        ["queryMsgById", "-i", unit["offsetMsgId"]],
        ["queryMsgById", "--msgId", unit["offsetMsgId"]],
        ["queryMsgByUniqueKey", *place, "-i", unit["uniqueKey"]],
        ["queryMsgByOffset", *place, "-i", unit["queueId"], "-o", unit["queueOffset"]],
        ["queryMsgByOffset", *place, "--queueId", unit["queueId"], "--offset", unit["queueOffset"]],
        ["queryCq", *place, "-q", unit["queueId"], "-i", 0, "-c", 3],
        ["queryCq", *place, "--queue", unit["queueId"], "--index", 0, "--count", 3],
        ["printMsg", *place],
        ["printMsgByQueue", *place, "-i", unit["queueId"]],
        ["topicStatus", *place],
    ):
        status, out, err = agree.command(*arguments, "-s", store, "--json")
        assert (status, err) == (0, ""), arguments
        records = [json.loads(line) for line in out.splitlines()]
        assert records
        if arguments[0] != "topicStatus":
            assert any(unit["physicalOffset"] == record["physicalOffset"] for record in records)


def test_mqadmin_takes_several_ids(store):
    ids = [unit["offsetMsgId"] for unit in agree.ask("units", store, "--limit", 2)[:2]]
    status, out, _ = agree.command("queryMsgById", "-s", store, "-i", ",".join(ids), "--json")
    assert status == 0
    assert [json.loads(line)["offsetMsgId"] for line in out.splitlines()] == ids
    assert agree.command("queryMsgById", "-s", store, "-i", f"{ids[0]},{'0' * 32}")[0] == 1


def test_a_time_as_mqadmin_writes_it():
    assert moment("2023-11-14#22:13:20:123") % 1000 == 123
    assert moment("1700000000000") == 1_700_000_000_000


NOTHING = [
    ["message", "STORE", "nobody"],
    ["message", "STORE", "7"],
    ["where", "STORE", "nobody"],
    ["trace", "STORE", "Orders", "nobody"],
    ["queryMsgByKey", "-s", "STORE", "-t", "Orders", "-k", "nobody"],
    ["queryMsgById", "-s", "STORE", "-i", "0" * 32],
    ["queryMsgByUniqueKey", "-s", "STORE", "-t", "Orders", "-i", "nobody"],
    ["queryMsgByOffset", "-s", "STORE", "-t", "Orders", "-i", "0", "-o", "999"],
    ["consumerProgress", "-s", "STORE", "-g", "nobody"],
]


@pytest.mark.parametrize("arguments", NOTHING, ids=lambda one: one[0])
def test_a_question_without_an_answer_ends_with_1(store, arguments):
    status, _, err = agree.command(*(store if word == "STORE" else word for word in arguments))
    assert status == 1
    assert err.count("\n") <= 1


def test_debug_adds_the_traceback_and_nothing_else_does(tmp_path):
    _, _, err = agree.command("info", tmp_path)
    assert "Traceback" not in err
    _, _, err = agree.command("info", tmp_path, "--debug")
    assert "Traceback" in err


@pytest.mark.parametrize("command", [["units", "STORE", "--body"], ["get", "STORE", "Orders", "0", "0"]])
def test_a_mask_hides_what_it_names_and_no_more(store, command):
    """Bodies, keys and hosts are gone from each record and from the table, places and topics are there."""
    command = [str(store) if word == "STORE" else word for word in command]
    plain, masked = agree.ask(*command), agree.ask(*command, "--mask", "bodies,keys,hosts")
    assert [list(one) for one in plain] == [list(one) for one in masked]
    units = [(one, other) for one, other in zip(plain, masked, strict=True) if one["type"] == "unit"]
    assert units
    for one, other in units:
        for name in ("physicalOffset", "topic", "queueOffset", "storeTimestamp", "tags"):
            assert one[name] == other[name]
        for name in ("bornHost", "storeHost", "offsetMsgId", "bodySha256"):
            assert one[name] != other[name]
        assert not set(one["keys"]) & set(other["keys"])
    _, shown, _ = agree.command(*command, "--markdown")
    _, hidden, _ = agree.command(*command, "--markdown", "--mask", "keys")
    key = units[0][0]["keys"][0]
    assert key in shown
    assert key not in hidden
