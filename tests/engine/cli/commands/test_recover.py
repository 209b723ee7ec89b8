"""``recover --apply``: says what it will do, asks, does it as shown; the store is left as by a broker's clean life."""

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


def same(store, before):
    return golden_stores.changes(before, golden_stores.fingerprint(store)) == []


def test_without_a_terminal_and_without_yes_nothing_changes(crashed, capsys):
    before = golden_stores.fingerprint(crashed)
    assert main(["recover", str(crashed), "--apply"]) == 2
    output = capsys.readouterr()
    assert "storescope snapshot" in output.err
    assert "units are dispatched again" in output.err
    assert "--yes" in output.err
    assert same(crashed, before)


def test_the_plan_says_above_all_what_the_start_loses(golden, capsys):
    """The loss stood below the figures, where nobody looked for it."""
    for name, lost in (("crash-flip-5.3.3", "762 messages, listed below"), (CRASHED, "no message")):
        assert main(["recover", str(golden(name)), "--plan"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"Lost by this start of RocketMQ 5.3: {lost}" in lines[: lines.index("")]


@pytest.mark.parametrize("flags", [[], ["--plan", "--apply"]])
def test_plan_or_apply_is_wanted_and_not_both(crashed, capsys, flags):
    before = golden_stores.fingerprint(crashed)
    assert main(["recover", str(crashed), *flags]) == 2
    assert "--plan" in capsys.readouterr().err
    assert same(crashed, before)


@pytest.mark.golden
@pytest.mark.crash
@pytest.mark.parametrize("name", [CRASHED, "crash-4.9.8", "crash-flip-5.3.3", "queues-gone-5.3.3"])
def test_what_is_done_is_what_was_shown(golden, tmp_path, capsys, name):
    store, like = tmp_path / "store", "4.9" if "4.9" in name else "5.3"
    shutil.copytree(golden(name), store)
    assert main(["recover", str(store), "--plan", "--json", "--like", like]) == 0
    (shown,) = records(capsys.readouterr().out)
    assert main(["recover", str(store), "--apply", "--yes", "--json", "--like", like]) == 0
    (done,) = records(capsys.readouterr().out)
    assert Path(done.pop("kept")["folder"]).parent == tmp_path
    assert "kept" not in shown
    assert {**done, "notes": shown["notes"]} == shown
    assert not (store / "abort").exists()
    if name != "queues-gone-5.3.3":
        assert (store / "abort.bak").exists() == (like == "5.3" or (golden(name) / "abort.bak").exists())
        _, parts = recovered_stores.recover(store, recovered_stores.golden_config(name), like)
        parts.close()
    assert main(["recover", str(store), "--plan", "--json", "--like", like]) == 0
    (after,) = records(capsys.readouterr().out)
    assert (after["exit"], after["units"], after["bytesDropped"], after["filesDeleted"]) == ("normal", 0, 0, [])
    assert (after["endOffset"], bounds(after)) == (done["endOffset"], bounds(done))
    if name != "crash-flip-5.3.3":  # there RocketMQ keeps index files that point behind the new end
        assert main(["check", str(store), "--json", "--quiet"]) == 0


def bounds(record):
    return {(q["topic"], q["queueId"]): (q["minOffset"], q["maxOffset"]) for q in record["queues"]}


def test_a_held_lock_is_respected(crashed, capsys):
    (crashed / "lock").touch()
    before = golden_stores.fingerprint(crashed)
    with (crashed / "lock").open("r+b") as held:
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, recovered_stores.WRITE_LOCK_ON_BYTE_0)
        assert main(["recover", str(crashed), "--apply", "--yes"]) == 3
    assert "nothing was changed" in capsys.readouterr().err
    assert same(crashed, before)


def test_where_a_broker_would_not_start_nothing_is_done(crashed, capsys):
    (crashed / "commitlog" / "no-number").write_bytes(b"x")
    before = golden_stores.fingerprint(crashed)
    assert main(["recover", str(crashed), "--apply", "--yes", "--json"]) == 3
    output = capsys.readouterr()
    assert records(output.out)[0]["willStart"] is False
    assert "no-number" in output.err
    assert same(crashed, before)


def test_an_empty_last_queue_file_goes_as_when_the_engine_opens_the_store(tmp_path, capsys):
    """A 5.3 broker dies of it. The engine deletes it and opens; ``--apply`` refused, which made two behaviours."""
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
    item, other = (
        {str(path.relative_to(root)): path.read_bytes() for path in root.glob("consumequeue/*/*/*")} for root in roots
    )
    assert item == other


@pytest.mark.golden
def test_progress_is_told_while_the_store_is_opened_and_dispatched(golden, tmp_path, capsys, monkeypatch):
    """It stood still without a word, for minutes where the queues of a large log are made again."""
    store = tmp_path / "store"
    shutil.copytree(golden("queues-gone-5.3.3"), store)
    reports = []
    monkeypatch.setattr(Progress, "at", lambda self, done, total=None: reports.append((self._what, done, self._total)))
    assert main(["recover", str(store), "--apply", "--yes", "--json"]) == 0
    assert records(capsys.readouterr().out)[0]["units"] > 0
    dispatched = [(done, total) for what, done, total in reports if what == "dispatch"]
    falls = [number for number, (item, then) in enumerate(pairwise(dispatched)) if then[0] < item[0]]
    assert len(falls) == 1, "once over the log, once over what is dispatched"
    received_dispatched = dispatched[falls[0] + 1 :]
    assert received_dispatched
    assert all(0 <= done < total for done, total in received_dispatched)
    looked = [(done, total) for what, done, total in reports if what == "recover"]
    assert sum(then[0] <= one[0] for one, then in pairwise(looked)) >= 1, "two plans are made"
    assert [what for what, _, _ in reports] == ["recover"] * len(looked) + ["dispatch"] * len(dispatched)
