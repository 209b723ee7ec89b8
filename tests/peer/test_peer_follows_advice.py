"""Advice carried out as an operator would, and the real RocketMQ started on the result: nothing is lost."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import agree
import golden_stores
import incident_states as states
import incidents
import peer
import pytest
import store_damage
from report_states import retention_deletes

from engine.cli.main import main
from engine.codec.index import decode_header
from engine.codec.message import Unit
from engine.inspection import recovery
from engine.inspection.entry_verdict import resolve
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store

pytestmark = [pytest.mark.peer, pytest.mark.golden, pytest.mark.timeout(600)]

PLAN = {"config": states.CONFIG}


@pytest.fixture
def built(golden, tmp_path):
    return lambda state: states.build(golden("broker-orders"), tmp_path / state.__name__, state)


@pytest.fixture
def java(tmp_path):
    return peer.Peer("5.3.3", tmp_path)


def no_queues(root):
    shutil.rmtree(root / "consumequeue")


def entries(java, store):
    """How many entries all queues have when the broker has started on a copy of ``store``; None where it refuses."""
    return started(java.dump(PLAN, store))


def started(account):
    if not next(row for row in account if row["t"] == "load")["ok"]:
        return None
    rows = [row for row in account if row["t"] == "queue" and row["when"] == "started"]
    return sum(row["max"] - row["min"] for row in rows)


LOSING = [
    (states.hole, states.MESSAGES, 226),
    (states.tail_of_next_to_last_file, states.MESSAGES + states.DELETED, 42),
    (states.pages_of_queues_lost, states.MESSAGES + states.DELETED, 597),
    (states.queue_folder_lost, states.MESSAGES + states.DELETED, 370),
    (states.pages_lost_and_closed, states.MESSAGES, 253),
]


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize(("state", "whole", "lost"), LOSING)
def test_a_start_loses_what_was_said_and_nothing_after_dispatch(built, java, capsys, state, whole, lost):
    root = built(state)
    with open_store(root) as store:
        finding = next(item for item in check(store) if item.id == "RP01")
    assert finding.evidence["messages"] == lost
    assert entries(java, root) == whole - lost
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    assert entries(java, root) == whole
    with open_store(root) as store:
        assert "RP01" not in [one.id for one in list(check(store))[:-1]]
    capsys.readouterr()


def test_wrong_entries_are_gone_after_dispatch(golden, tmp_path, java, capsys):
    """One that was never written, and a queue that holds those of another one."""
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    incidents.shift(root, "OrderEvents/0", 200)
    for path in sorted((root / "consumequeue/PaymentEvents/0").iterdir()):
        shutil.copy(path, root / "consumequeue/PaymentEvents/1" / path.name)
    assert main(["check", str(root), "--quiet"]) == 1
    assert capsys.readouterr().out.count(f"storescope dispatch {root} --to NEW") >= 1
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    assert main(["check", str(root), "--quiet"]) == 0
    assert entries(java, root) == states.MESSAGES
    assert not agree.queue(root, java.dump(PLAN, root)).differences
    capsys.readouterr()


def test_with_abort_a_checkpoint_of_zero_makes_the_start_read_the_whole_log(built, java):
    root = built(states.pages_of_queues_lost)
    states.set_checkpoint(root, physic=0, logics=0)
    assert entries(java, root) == states.MESSAGES + states.DELETED


def test_an_index_is_kept_by_recovering_first_and_building_it_then(built, java, capsys):
    """A broker's start deletes 11 of 16 files; after a build alone it would delete them all the same."""
    root = built(states.index_behind_the_checkpoint)
    before = keys(root)
    assert main(["recover", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    java.dump(PLAN, root, in_place=True)
    assert keys(root) == before
    capsys.readouterr()


def keys(root):
    return sum(decode_header(path.read_bytes()).entries for path in (root / "index").iterdir())


def test_a_copy_has_the_messages_behind_the_damage_that_a_start_drops(built, java, tmp_path, capsys):
    root = built(states.magic_code_lost)
    before = entries(java, root)
    assert main(["copy", str(root), str(tmp_path / "new"), "--quiet"]) == 0
    assert entries(java, tmp_path / "new") == before + 307 == states.MESSAGES - 1
    capsys.readouterr()


# -- states of single files: what the step says is done, and the broker started on the result


def advice(root, rule):
    """The one finding of ``rule`` on the store."""
    with open_store(root) as store:
        (results,) = [finding for finding in list(check(store))[:-1] if finding.id == rule]
    return results


def built_as_said(root, rule, tmp_path, *arguments):
    """The step's command carried out, and what it built put in the place of what the store had."""
    words = shlex.split(advice(root, rule).command.replace("NEW", str(tmp_path / "new")))
    assert words[0] == "storescope"
    assert main([*words[1:], "--quiet", *arguments]) == 0
    for file in (tmp_path / "new").iterdir():
        shutil.rmtree(root / file.name, ignore_errors=True)
        file.rename(root / file.name)


def followed(root, found, tmp_path, monkeypatch, capsys):
    """The finding's command and those that it prints, as a shell takes them; the old folders are kept."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(found.command)
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in states.CONFIG.items()))
    arguments = ["--config", str(conf)] if "--config broker.conf" in found.next_step else []
    assert main([*words[1:], "--quiet", *arguments]) == 0
    assert "the command prints how" in found.next_step
    script = "".join(line for line in capsys.readouterr().out.splitlines(keepends=True) if line.startswith("  "))
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)


def folders(root):
    return sorted(path.name for path in root.iterdir())


@pytest.mark.parametrize(("release", "store"), [("4.9.8", "broker-orders-4.9.7"), ("5.3.3", "broker-orders")])
def test_queues_that_are_all_lost_are_left_to_the_next_start(golden, tmp_path, release, store):
    """What a start heals by itself needs no command."""
    java = peer.Peer(release, tmp_path)
    root = states.build(golden(store), tmp_path / "store", no_queues)
    with open_store(root) as opened:
        finding = next(item for item in list(check(opened, only={"CQ10"}))[:-1])
    assert (
        finding.severity,
        f"the next start of RocketMQ {release} dispatches these messages again" in finding.next_step,
    ) == ("warn", True)
    assert entries(java, root) >= entries(java, golden(store)) > 0, "those of a topic that was deleted come back, too"


def test_what_was_built_elsewhere_is_put_in_place_as_said(built, java, tmp_path, monkeypatch, capsys):
    """The step ended with a folder NEW, and nobody said how it becomes the store's."""
    root = built(states.pages_lost_and_closed)
    before = folders(root)
    with open_store(root) as store:
        results = next(item for item in list(check(store, only={"RP01"}))[:-1])
    followed(root, results, tmp_path, monkeypatch, capsys)
    assert {*before} <= {*folders(root)} <= {*before, "consumequeue"}
    assert "index" in folders(root.with_name(f"{root.name}.old"))
    assert not list((tmp_path / "NEW").iterdir())
    assert entries(java, root) == states.MESSAGES
    assert not agree.queue(root, java.dump(PLAN, root)).differences


def newest(root):
    return max((root / "commitlog").iterdir())


@pytest.mark.parametrize(("release", "store"), [("4.9.8", "broker-orders-4.9.7"), ("5.3.3", "broker-orders")])
def test_an_empty_last_file_is_removed(golden, tmp_path, release, store):
    java = peer.Peer(release, tmp_path)
    root = incidents.copied(golden(store), tmp_path / "store")
    (root / "commitlog" / f"{int(newest(root).name) + incidents.LOG_FILE:020d}").touch()
    full_entries = entries(java, golden(store))
    assert entries(java, root) == (None if release == "4.9.8" else full_entries)
    actual_advice = advice(root, "CL07")
    assert "delete the empty file" in actual_advice.next_step
    Path(actual_advice.file).unlink()
    assert entries(java, root) == full_entries > 0


def test_a_longer_last_file_is_copied_out_of(golden, tmp_path, java, capsys):
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    newest(root).write_bytes(newest(root).read_bytes() + bytes(4096))
    assert entries(java, root) is None
    assert "Copy the messages out of the longer file" in advice(root, "CL07").next_step
    assert main(["copy", str(root), str(tmp_path / "new"), "--quiet"]) == 0
    assert entries(java, tmp_path / "new") == states.MESSAGES
    capsys.readouterr()


def test_a_short_last_file_is_brought_back_or_copied_out_of(golden, tmp_path, java, capsys):
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    content = newest(root).read_bytes()
    newest(root).write_bytes(content[:300_000])
    assert entries(java, root) is None
    actual_advice = advice(root, "CL07")
    assert (
        "restore the complete file from a replica or a backup; what is left in this file can be copied out"
        in actual_advice.next_step
    )
    assert main(["copy", str(root), str(tmp_path / "new"), "--quiet"]) == 0
    assert entries(java, tmp_path / "new") == states.MESSAGES - actual_advice.evidence["queueEntries"]
    newest(root).write_bytes(content)
    assert entries(java, root) == states.MESSAGES
    capsys.readouterr()


def test_a_foreign_file_is_moved_out(built, java, tmp_path):
    root = built(states.name_that_is_no_number)
    assert entries(java, root) is None
    actual_advice = advice(root, "DK01")
    assert "move it out of the store's folders" in actual_advice.next_step
    Path(actual_advice.file).rename(tmp_path / "moved")
    assert entries(java, root) == states.MESSAGES


def test_a_short_queue_file_is_built_again(golden, tmp_path, java, capsys):
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    short = max((root / "consumequeue/OrderEvents/0").iterdir())
    short.write_bytes(short.read_bytes()[:3000])
    assert entries(java, root) is None
    built_as_said(root, "CQ01", tmp_path)
    assert entries(java, root) == states.MESSAGES
    capsys.readouterr()


def test_lost_ext_files_are_built_again(golden, tmp_path, java, capsys):
    """What a consumer gets by its tag is what it got before they were lost."""
    plan = json.loads((golden_stores.GOLDEN / "multi-queue-ext-5.3.3" / "plan.json").read_text(encoding="utf-8"))
    full_golden = golden("multi-queue-ext-5.3.3")
    root = incidents.copied(full_golden, tmp_path / "store")
    shutil.rmtree(root / "consumequeue_ext")
    before = by_tag(java.dump(plan, full_golden))
    assert by_tag(java.dump(plan, root)) != before
    built_as_said(root, "CQ15", tmp_path)
    assert by_tag(java.dump(plan, root)) == before
    capsys.readouterr()


def by_tag(account):
    rows = [row for row in account if row["t"] == "get" and row["tag"] is not None]
    return [(row["topic"], row["queue"], row["offset"], row["tag"], row["status"], row["phys"]) for row in rows]


def test_a_lost_index_is_built_again(golden, tmp_path, java, capsys):
    """Without --config it had RocketMQ's own sizes, and this broker, whose sizes are others, found no key in it."""
    full_golden = golden("broker-orders")
    root = incidents.copied(full_golden, tmp_path / "store")
    shutil.rmtree(root / "index")
    before = by_key(java.dump(PLAN, full_golden))
    assert not any(by_key(java.dump(PLAN, root)).values())
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in states.CONFIG.items()))
    assert "(--config) if the index sizes are not the defaults" in advice(root, "IX10").next_step
    built_as_said(root, "IX10", tmp_path, "--config", str(conf))
    assert by_key(java.dump(PLAN, root)) == before
    assert sum(map(bool, before.values())) > 100
    capsys.readouterr()


def by_key(account):
    """What the real index says of each key that was asked for."""
    rows = [row for row in account if row["t"] == "key" and row["begin"] == 0 and row["end"] == (1 << 63) - 1]
    return {(row["topic"], row["key"]): row["phys"] for row in rows}


@pytest.mark.parametrize("ended", ["closed", "crashed"])
def test_a_checkpoint_of_no_bytes_costs_nothing_but_time(golden, tmp_path, java, ended):
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    (root / "checkpoint").write_bytes(b"")
    if ended == "crashed":
        incidents.crashed(root)
    assert "costs only time" in advice(root, "CK05").next_step
    assert entries(java, root) == states.MESSAGES + (states.DELETED if ended == "crashed" else 0)


ORDERS = [("4.9.8", "broker-orders-4.9.7"), ("5.3.3", "broker-orders"), ("5.5.1", "broker-orders-5.5.1")]


@pytest.mark.parametrize(("release", "store"), ORDERS[1:])
def test_older_log_files_in_front_lose_nothing_and_are_moved_away(golden, tmp_path, release, store, capsys):
    """They were told as a gap with lost messages. A real start keeps every message of today's log and leads consumers
    past them; when they are moved away, its queues begin where they did.
    """
    java = peer.Peer(release, tmp_path)
    root = incidents.copied(golden(store), tmp_path / "store")
    first = min((root / "commitlog").iterdir())
    data = first.read_bytes()
    retention_deletes(root, 2)
    today = numbers(java.dump(PLAN, root))
    first.write_bytes(data)
    finding = advice(root, "CL07")
    assert finding.severity == "warn"
    with open_store(root) as opened:
        plan = recovery.plan(opened, release[:3])
    assert plan.undispatched is not None
    assert (plan.will_start, plan.undispatched.messages) == (True, 0)
    with_them = numbers(java.dump(PLAN, root))
    assert {key: place for key, place in with_them.items() if place >= finding.evidence["begins"]} == today
    assert len(today) > 100
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["sh", "-ec", (finding.command or "").replace("ELSEWHERE", str(elsewhere))], check=True)
    assert numbers(java.dump(PLAN, root)) == today
    capsys.readouterr()


@pytest.mark.parametrize(("release", "store"), ORDERS)
def test_an_index_file_gets_its_name_back(golden, tmp_path, release, store, capsys):
    """The oldest index file had the newest name: the broker finds less by key and time, until the file is renamed."""
    java = peer.Peer(release, tmp_path)
    full_golden = golden(store)
    root = incidents.copied(full_golden, tmp_path / "store")
    files = sorted((root / "index").iterdir())
    files[0].rename(root / "index" / str(int(files[-1].name) + 1))
    before = by_any_window(java.dump(PLAN, full_golden))
    renamed = by_any_window(java.dump(PLAN, root))
    assert sum(bool(set(before[key]) - set(renamed.get(key, ()))) for key in before) > 0
    actual_advice = advice(root, "IX11")
    subprocess.run(["sh", "-ec", actual_advice.command or ""], check=True)
    assert by_any_window(java.dump(PLAN, root)) == before
    with open_store(root) as opened:
        assert list(check(opened, only={"IX11"}))[:-1] == []
    capsys.readouterr()


def by_any_window(account):
    """What the real index says of each key, in every span of time that was asked for."""
    return {(r["topic"], r["key"], r["begin"], r["end"]): r["phys"] for r in account if r["t"] == "key"}


# -- what a start is said to lose, over planted faults


def slave_was_away(root):
    """The first file of the log expired while the store stood still, and each queue ends within that file."""
    first = min((root / "commitlog").iterdir())
    size = first.stat().st_size
    for folder in sorted(path for path in (root / "consumequeue").glob("*/*") if path.is_dir()):
        for number, path in enumerate(sorted(folder.iterdir())):
            data = bytearray(path.read_bytes())
            for position in range(0, len(data), 20):
                if number or int.from_bytes(data[position : position + 8], "big") >= size // 2:
                    data[position : position + 20] = bytes(20)
            path.write_bytes(data)
    first.unlink()
    shutil.rmtree(root / "index")
    states.set_checkpoint(root, physic=0, logics=0)
    (root / "abort").touch()


def numbers(account):
    """(topic, queue, queue offset) → place in the log, as the broker's queues have it."""
    return {(row["topic"], row["queue"], row["n"]): row["phy"] for row in account if row["t"] == "cq"}


def own_numbers(root):
    """The same as the units say it themselves."""
    with open_store(root) as store:
        units = [unit for unit in store.units() if isinstance(unit, Unit)]
    return {(unit.topic, unit.queue_id, unit.queue_offset): unit.offset for unit in units}


def test_numbers_that_jump_are_right_after_the_advice(golden, tmp_path, java, capsys):
    """Queues end, and the log goes on with later numbers. "The next start dispatches these again" gave each message a
    wrong number; recovering and building the queues before any start gives each its own.
    """
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    slave_was_away(root)
    actual_advice = advice(root, "RP03")
    own = own_numbers(root)
    wrong = [
        key for key, place in numbers(java.dump(PLAN, root)).items() if own.get(key, place) != place or key not in own
    ]
    assert len(wrong) >= actual_advice.evidence["units"] > 100
    assert "storescope recover" in actual_advice.command
    assert main(["recover", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    after = numbers(java.dump(PLAN, root))
    assert {key: place for key, place in own.items() if key in after} == {
        key: after[key] for key in own if key in after
    }
    assert len(set(own) & set(after)) > 500
    capsys.readouterr()


def readable(root):
    """What a store's queues lead to: (topic, queue, queue offset) → place of the intact unit."""
    results = {}
    with open_store(root) as store:
        for topic, queues in store.topics().items():
            for number, queue in queues.items():
                for entry in queue.entries(max(queue.min_offset, 0)) if queue.kind == "simple" else ():
                    if entry.state == "entry" and resolve(store.log, topic, number, entry, crc=True).verdict == "ok":
                        results[topic, number, entry.queue_offset] = entry.physical_offset
    return results


WALKED = {
    "5.3.3": (("crash-5.3.3", "broker-orders", "clean-5.3.3"), [*range(0, 12, 2), 26, 40, 44]),
    "5.4.0": (("crash-5.4.0",), range(4)),
    "5.5.1": (("late-queue-flush-5.5.1", "clean-5.5.1", "queues-gone-past-ten-files-5.5.1"), range(9)),
}
"""Stores of each release, and the seeds of the damage."""


@pytest.mark.full_form(keep=10)
@pytest.mark.parametrize(("release", "seed"), [(release, seed) for release in WALKED for seed in WALKED[release][1]])
def test_a_start_that_is_said_to_lose_nothing_loses_nothing(golden, tmp_path, release, seed):
    """Every message that could be read before is there under its own number afterwards, or its loss was said."""
    names = WALKED[release][0]
    name = names[seed % len(names)]
    root = incidents.copied(golden(name), tmp_path / "store")
    store_damage.damage(random.Random(seed), root)
    plan = PLAN
    if name != "broker-orders":
        plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    before = readable(root)
    with open_store(root) as store:
        summary = list(check(store))[-1]
    incident = summary.incident
    output = incident["lostByNextStart"].get(release[:3]) if incident is not None else {"starts": True, "messages": 0}
    account = peer.Peer(release, tmp_path).dump(plan, root)
    starts = next(row for row in account if row["t"] == "load")["ok"]
    if output is None or not output["starts"] or not starts:
        assert output is None or output["starts"] == starts
        return
    after = numbers(account)
    lost = [key for key, place in before.items() if after.get(key) != place]
    assert len(lost) <= output["messages"] + output.get("wrongNumbers", 0)
