"""``recover --apply``: prints its plan, asks, applies exactly that plan, and leaves the store as after a clean stop."""

from __future__ import annotations

import fcntl
import json
import shutil
from itertools import pairwise
from pathlib import Path

import golden_stores
import pytest
import recovered_stores

from engine.cli.main import main
from engine.cli.output import Progress
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.message_store import MessageStore

CRASHED = "crash-5.3.3"


@pytest.fixture
def crashed(golden, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(golden(CRASHED), store)
    return store


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def is_unchanged(store, fingerprint_before):
    return golden_stores.changes(fingerprint_before, golden_stores.fingerprint(store)) == []


def test_without_a_terminal_and_without_yes_nothing_changes(crashed, capsys):
    files_before = golden_stores.fingerprint(crashed)
    assert main(["recover", str(crashed), "--apply"]) == 2
    output = capsys.readouterr()
    assert "storescope snapshot" in output.err
    assert "units are dispatched again" in output.err
    assert "--yes" in output.err
    assert is_unchanged(crashed, files_before)


def test_the_plan_prints_the_losses_first(golden, capsys):
    """The lost messages were listed below the figures, where users missed them."""
    for name, lost in (("crash-flip-5.3.3", "762 messages, listed below"), (CRASHED, "no message")):
        assert main(["recover", str(golden(name)), "--plan"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"Lost by this start of RocketMQ 5.3: {lost}" in lines[: lines.index("")]


@pytest.mark.parametrize("flags", [[], ["--plan", "--apply"]])
def test_exactly_one_of_plan_and_apply_is_required(crashed, capsys, flags):
    files_before = golden_stores.fingerprint(crashed)
    assert main(["recover", str(crashed), *flags]) == 2
    assert "--plan" in capsys.readouterr().err
    assert is_unchanged(crashed, files_before)


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", [CRASHED, "crash-4.9.8", "crash-flip-5.3.3", "queues-gone-5.3.3"])
def test_the_applied_plan_is_the_shown_plan(golden, tmp_path, capsys, name):
    store, release = tmp_path / "store", "4.9" if "4.9" in name else "5.3"
    shutil.copytree(golden(name), store)
    assert main(["recover", str(store), "--plan", "--json", "--like", release]) == 0
    (plan,) = records(capsys.readouterr().out)
    assert main(["recover", str(store), "--apply", "--yes", "--json", "--like", release]) == 0
    (applied,) = records(capsys.readouterr().out)
    assert Path(applied.pop("kept")["folder"]).parent == tmp_path
    assert "kept" not in plan
    assert {**applied, "notes": plan["notes"]} == plan
    assert not (store / "abort").exists()
    if name != "queues-gone-5.3.3":
        assert (store / "abort.bak").exists() == (release == "5.3" or (golden(name) / "abort.bak").exists())
        _, parts = recovered_stores.recover(store, recovered_stores.golden_config(name), release)
        parts.close()
    assert main(["recover", str(store), "--plan", "--json", "--like", release]) == 0
    (next_plan,) = records(capsys.readouterr().out)
    assert (next_plan["exit"], next_plan["units"], next_plan["bytesDropped"], next_plan["filesDeleted"]) == (
        "normal",
        0,
        0,
        [],
    )
    assert (next_plan["endOffset"], bounds(next_plan)) == (applied["endOffset"], bounds(applied))
    if name != "crash-flip-5.3.3":  # there RocketMQ keeps index files that point behind the new end
        assert main(["check", str(store), "--json", "--quiet"]) == 0


def bounds(record):
    return {(q["topic"], q["queueId"]): (q["minOffset"], q["maxOffset"]) for q in record["queues"]}


def test_a_held_lock_is_respected(crashed, capsys):
    (crashed / "lock").touch()
    files_before = golden_stores.fingerprint(crashed)
    with (crashed / "lock").open("r+b") as lock_file:
        fcntl.fcntl(lock_file, fcntl.F_OFD_SETLK, recovered_stores.WRITE_LOCK_ON_BYTE_0)
        assert main(["recover", str(crashed), "--apply", "--yes"]) == 3
    assert "nothing was changed" in capsys.readouterr().err
    assert is_unchanged(crashed, files_before)


def test_nothing_is_applied_where_a_broker_would_not_start(crashed, capsys):
    (crashed / "commitlog" / "no-number").write_bytes(b"x")
    files_before = golden_stores.fingerprint(crashed)
    assert main(["recover", str(crashed), "--apply", "--yes", "--json"]) == 3
    output = capsys.readouterr()
    assert records(output.out)[0]["willStart"] is False
    assert "no-number" in output.err
    assert is_unchanged(crashed, files_before)


def test_an_empty_last_queue_file_is_deleted_as_when_the_engine_opens_the_store(tmp_path, capsys):
    """A 5.3 broker fails on this file. The engine deletes it and opens the store, but ``--apply`` refused."""
    config = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "mappedFileSizeConsumeQueue": 400})[0]
    roots = [tmp_path / "applied", tmp_path / "opened"]
    with MessageStore(roots[0], config, services=False) as store:
        for number in range(20):
            assert store.put_message(Message("Orders", b"x", keys=f"k{number}")).ok
        assert store.put_message(Message("Half", b"x", sys_flag=4)).ok
    empty = roots[0] / "consumequeue" / "Orders" / "0" / f"{400:020d}"
    empty.write_bytes(bytes(400))
    shutil.copytree(*roots)
    assert main(["recover", str(roots[0]), "--plan", "--json", "--release", "5.3"]) == 1
    (shown,) = records(capsys.readouterr().out)
    assert [blocker["finding"] for blocker in shown["blockers"]] == ["CQ06"]
    assert main(["recover", str(roots[0]), "--apply", "--release", "5.3"]) == 2
    assert "a broker would not start here" in capsys.readouterr().err
    assert main(["recover", str(roots[0]), "--apply", "--yes", "--release", "5.3"]) == 0
    with MessageStore(roots[1], config, services=False) as store:
        assert store.recovery_plan.will_start
    assert not empty.exists()
    applied_files, opened_files = (
        {str(path.relative_to(root)): path.read_bytes() for path in root.glob("consumequeue/*/*/*")} for root in roots
    )
    assert applied_files == opened_files


@pytest.mark.golden
def test_progress_is_reported_while_the_store_is_opened_and_dispatched(golden, tmp_path, capsys, monkeypatch):
    """The command showed no progress, for minutes if the queues of a large log were rebuilt."""
    store = tmp_path / "store"
    shutil.copytree(golden("queues-gone-5.3.3"), store)
    reports = []
    monkeypatch.setattr(
        Progress, "update", lambda self, done, total=None: reports.append((self._label, done, self._total))
    )
    assert main(["recover", str(store), "--apply", "--yes", "--json"]) == 0
    assert records(capsys.readouterr().out)[0]["units"] > 0
    dispatched = [(done, total) for task, done, total in reports if task == "dispatch"]
    falls = [number for number, (step, next_step) in enumerate(pairwise(dispatched)) if next_step[0] < step[0]]
    assert len(falls) == 1, "once over the log, once over what is dispatched"
    dispatched_units = dispatched[falls[0] + 1 :]
    assert dispatched_units
    assert all(0 <= done < total for done, total in dispatched_units)
    planned = [(done, total) for task, done, total in reports if task == "recover"]
    assert sum(next_step[0] <= step[0] for step, next_step in pairwise(planned)) >= 1, "two plans are made"
    assert [task for task, _, _ in reports] == ["recover"] * len(planned) + ["dispatch"] * len(dispatched)
