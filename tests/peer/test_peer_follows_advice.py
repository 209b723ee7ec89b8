"""Advice of findings is carried out, and the real RocketMQ is started on the result: nothing is lost."""

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
    """Return the number of entries in all queues after the broker has started on a copy of ``store``; None if it
    refuses.
    """
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


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize(("state", "complete_count", "lost_count"), LOSING)
def test_a_start_loses_the_predicted_messages_and_none_after_dispatch(
    built, java, capsys, state, complete_count, lost_count
):
    root = built(state)
    with open_store(root) as store:
        finding = next(finding_ for finding_ in check(store) if finding_.id == "RP01")
    assert finding.evidence["messages"] == lost_count
    assert entries(java, root) == complete_count - lost_count
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    assert entries(java, root) == complete_count
    with open_store(root) as store:
        assert "RP01" not in [finding_.id for finding_ in list(check(store))[:-1]]
    capsys.readouterr()


def test_wrong_entries_are_gone_after_dispatch(golden, tmp_path, java, capsys):
    """A queue has an entry that was never written, another holds the entries of a third one."""
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
    """A broker's start deletes 11 of 16 files; after a rebuild alone it would still delete them."""
    root = built(states.index_behind_the_checkpoint)
    keys_before = keys(root)
    assert main(["recover", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    java.dump(PLAN, root, in_place=True)
    assert keys(root) == keys_before
    capsys.readouterr()


def keys(root):
    return sum(decode_header(path.read_bytes()).entries for path in (root / "index").iterdir())


def test_a_copy_has_the_messages_behind_the_damage_that_a_start_drops(built, java, tmp_path, capsys):
    root = built(states.magic_code_lost)
    entries_after_start = entries(java, root)
    assert main(["copy", str(root), str(tmp_path / "new"), "--quiet"]) == 0
    assert entries(java, tmp_path / "new") == entries_after_start + 307 == states.MESSAGES - 1
    capsys.readouterr()


# -- states of single files: what the step says is done, and the broker started on the result


def advice(root, rule):
    """Return the only finding of ``rule`` in the store."""
    with open_store(root) as store:
        (results,) = [finding for finding in list(check(store))[:-1] if finding.id == rule]
    return results


def built_as_said(root, rule, tmp_path, *arguments):
    """Carry out the step's command, and replace the store's files by those that it built."""
    words = shlex.split(advice(root, rule).command.replace("NEW", str(tmp_path / "new")))
    assert words[0] == "storescope"
    assert main([*words[1:], "--quiet", *arguments]) == 0
    for file in (tmp_path / "new").iterdir():
        shutil.rmtree(root / file.name, ignore_errors=True)
        file.rename(root / file.name)


def followed(root, finding, tmp_path, monkeypatch, capsys):
    """Run the finding's command and the commands that it prints, like a shell; the old folders are kept."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(finding.command)
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in states.CONFIG.items()))
    arguments = ["--config", str(conf)] if "--config broker.conf" in finding.next_step else []
    assert main([*words[1:], "--quiet", *arguments]) == 0
    assert "the command prints how" in finding.next_step
    script = "".join(line for line in capsys.readouterr().out.splitlines(keepends=True) if line.startswith("  "))
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)


def folders(root):
    return sorted(path.name for path in root.iterdir())


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize(("release", "store"), [("4.9.8", "broker-orders-4.9.7"), ("5.3.3", "broker-orders")])
def test_queues_that_are_all_lost_are_left_to_the_next_start(golden, tmp_path, release, store):
    """The start repairs this by itself, so no command is needed."""
    java = peer.Peer(release, tmp_path)
    root = states.build(golden(store), tmp_path / "store", no_queues)
    with open_store(root) as opened:
        finding = next(item for item in list(check(opened, only={"CQ10"}))[:-1])
    assert (
        finding.severity,
        f"the next start of RocketMQ {release} dispatches these messages again" in finding.next_step,
    ) == ("warn", True)
    assert entries(java, root) >= entries(java, golden(store)) > 0, "those of a topic that was deleted come back, too"


def test_folders_built_elsewhere_are_moved_in_place_by_the_printed_commands(built, java, tmp_path, monkeypatch, capsys):
    """The step ended with a folder NEW, and did not say how it becomes the store's."""
    root = built(states.pages_lost_and_closed)
    folders_before = folders(root)
    with open_store(root) as store:
        finding = next(item for item in list(check(store, only={"RP01"}))[:-1])
    followed(root, finding, tmp_path, monkeypatch, capsys)
    assert {*folders_before} <= {*folders(root)} <= {*folders_before, "consumequeue"}
    assert "index" in folders(root.with_name(f"{root.name}.old"))
    assert not list((tmp_path / "NEW").iterdir())
    assert entries(java, root) == states.MESSAGES
    assert not agree.queue(root, java.dump(PLAN, root)).differences


def newest(root):
    return max((root / "commitlog").iterdir())


@pytest.mark.full_form(keep=1)
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
    queue_file = max((root / "consumequeue/OrderEvents/0").iterdir())
    queue_file.write_bytes(queue_file.read_bytes()[:3000])
    assert entries(java, root) is None
    built_as_said(root, "CQ01", tmp_path)
    assert entries(java, root) == states.MESSAGES
    capsys.readouterr()


def test_lost_ext_files_are_built_again(golden, tmp_path, java, capsys):
    """A consumer gets the same messages by tag as before the loss."""
    plan = json.loads((golden_stores.GOLDEN / "multi-queue-ext-5.3.3" / "plan.json").read_text(encoding="utf-8"))
    full_golden = golden("multi-queue-ext-5.3.3")
    root = incidents.copied(full_golden, tmp_path / "store")
    shutil.rmtree(root / "consumequeue_ext")
    by_tag_before = by_tag(java.dump(plan, full_golden))
    assert by_tag(java.dump(plan, root)) != by_tag_before
    built_as_said(root, "CQ15", tmp_path)
    assert by_tag(java.dump(plan, root)) == by_tag_before
    capsys.readouterr()


def by_tag(account):
    rows = [row for row in account if row["t"] == "get" and row["tag"] is not None]
    return [(row["topic"], row["queue"], row["offset"], row["tag"], row["status"], row["phys"]) for row in rows]


def test_a_lost_index_is_built_again(golden, tmp_path, java, capsys):
    """Without --config it had RocketMQ's default sizes, and this broker, which has other sizes, found no key in it."""
    full_golden = golden("broker-orders")
    root = incidents.copied(full_golden, tmp_path / "store")
    shutil.rmtree(root / "index")
    by_key_before = by_key(java.dump(PLAN, full_golden))
    assert not any(by_key(java.dump(PLAN, root)).values())
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in states.CONFIG.items()))
    assert "(--config) if the index sizes are not the defaults" in advice(root, "IX10").next_step
    built_as_said(root, "IX10", tmp_path, "--config", str(conf))
    assert by_key(java.dump(PLAN, root)) == by_key_before
    assert sum(map(bool, by_key_before.values())) > 100
    capsys.readouterr()


def by_key(account):
    """Return the result of the real index for each queried key."""
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


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize(("release", "store"), ORDERS[1:])
def test_older_log_files_in_front_lose_nothing_and_are_moved_away(golden, tmp_path, release, store, capsys):
    """They were reported as a gap with lost messages. A real start keeps every message of today's log and leads
    consumers past them; after they are moved away, its queues begin where they did.
    """
    java = peer.Peer(release, tmp_path)
    root = incidents.copied(golden(store), tmp_path / "store")
    oldest_file = min((root / "commitlog").iterdir())
    data = oldest_file.read_bytes()
    retention_deletes(root, 2)
    places_today = numbers(java.dump(PLAN, root))
    oldest_file.write_bytes(data)
    finding = advice(root, "CL07")
    assert finding.severity == "warn"
    with open_store(root) as opened:
        plan = recovery.plan(opened, release[:3])
    assert plan.undispatched is not None
    assert (plan.will_start, plan.undispatched.messages) == (True, 0)
    with_them = numbers(java.dump(PLAN, root))
    assert {key: place for key, place in with_them.items() if place >= finding.evidence["begins"]} == places_today
    assert len(places_today) > 100
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["sh", "-ec", (finding.command or "").replace("ELSEWHERE", str(elsewhere))], check=True)
    assert numbers(java.dump(PLAN, root)) == places_today
    capsys.readouterr()


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize(("release", "store"), ORDERS)
def test_an_index_file_gets_its_name_back(golden, tmp_path, release, store, capsys):
    """The oldest index file had the newest name: the broker finds less by key and time, until the file is renamed."""
    java = peer.Peer(release, tmp_path)
    full_golden = golden(store)
    root = incidents.copied(full_golden, tmp_path / "store")
    files = sorted((root / "index").iterdir())
    files[0].rename(root / "index" / str(int(files[-1].name) + 1))
    keys_before = by_any_window(java.dump(PLAN, full_golden))
    keys_after_renaming = by_any_window(java.dump(PLAN, root))
    assert sum(bool(set(keys_before[key]) - set(keys_after_renaming.get(key, ()))) for key in keys_before) > 0
    finding = advice(root, "IX11")
    subprocess.run(["sh", "-ec", finding.command or ""], check=True)
    assert by_any_window(java.dump(PLAN, root)) == keys_before
    with open_store(root) as opened:
        assert list(check(opened, only={"IX11"}))[:-1] == []
    capsys.readouterr()


def by_any_window(account):
    """Return the result of the real index for each queried key and span of time."""
    return {(r["topic"], r["key"], r["begin"], r["end"]): r["phys"] for r in account if r["t"] == "key"}


# -- what a start is said to lose, over planted faults


def slave_was_away(root):
    """The first file of the log expired while the store stood still, and each queue ends within that file."""
    first_file = min((root / "commitlog").iterdir())
    size = first_file.stat().st_size
    for folder in sorted(path for path in (root / "consumequeue").glob("*/*") if path.is_dir()):
        for number, path in enumerate(sorted(folder.iterdir())):
            data = bytearray(path.read_bytes())
            for position in range(0, len(data), 20):
                if number or int.from_bytes(data[position : position + 8], "big") >= size // 2:
                    data[position : position + 20] = bytes(20)
            path.write_bytes(data)
    first_file.unlink()
    shutil.rmtree(root / "index")
    states.set_checkpoint(root, physic=0, logics=0)
    (root / "abort").touch()


def numbers(account):
    """Return a dictionary: (topic, queue, queue offset) → place in the log, from the broker's queues."""
    return {(row["topic"], row["queue"], row["n"]): row["phy"] for row in account if row["t"] == "cq"}


def own_numbers(root):
    """Return the same dictionary from the units themselves."""
    with open_store(root) as store:
        units = [unit for unit in store.units() if isinstance(unit, Unit)]
    return {(unit.topic, unit.queue_id, unit.queue_offset): unit.offset for unit in units}


def test_numbers_that_jump_are_right_after_the_advice(golden, tmp_path, java, capsys):
    """Queues end, and the log continues with later numbers. "The next start dispatches these again" gave each message a
    wrong number; recovering and building the queues before any start gives each its own.
    """
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    slave_was_away(root)
    finding = advice(root, "RP03")
    numbers_of_units = own_numbers(root)
    wrong = [
        key
        for key, place in numbers(java.dump(PLAN, root)).items()
        if numbers_of_units.get(key, place) != place or key not in numbers_of_units
    ]
    assert len(wrong) >= finding.evidence["units"] > 100
    assert "storescope recover" in finding.command
    assert main(["recover", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    numbers_after = numbers(java.dump(PLAN, root))
    assert {key: place for key, place in numbers_of_units.items() if key in numbers_after} == {
        key: numbers_after[key] for key in numbers_of_units if key in numbers_after
    }
    assert len(set(numbers_of_units) & set(numbers_after)) > 500
    capsys.readouterr()


def readable(root):
    """Return a dictionary from a store's queues: (topic, queue, queue offset) → place of the intact unit."""
    places = {}
    with open_store(root) as store:
        for topic, queues in store.topics().items():
            for number, queue in queues.items():
                for entry in queue.entries(max(queue.min_offset, 0)) if queue.kind == "simple" else ():
                    if entry.state == "entry" and resolve(store.log, topic, number, entry, crc=True).verdict == "ok":
                        places[topic, number, entry.queue_offset] = entry.physical_offset
    return places


WALKED = {
    "5.3.3": (("crash-5.3.3", "broker-orders", "clean-5.3.3"), [*range(0, 12, 2), 26, 40, 44]),
    "5.4.0": (("crash-5.4.0",), range(4)),
    "5.5.1": (("late-queue-flush-5.5.1", "clean-5.5.1", "queues-gone-past-ten-files-5.5.1"), range(9)),
}
"""Stores of each release, and the seeds of the damage."""


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize(("release", "seed"), [(release, seed) for release in WALKED for seed in WALKED[release][1]])
def test_a_start_loses_no_more_than_was_predicted(golden, tmp_path, release, seed):
    """Every message that was readable before still has its own number afterwards, or its loss was predicted."""
    names = WALKED[release][0]
    name = names[seed % len(names)]
    root = incidents.copied(golden(name), tmp_path / "store")
    store_damage.damage(random.Random(seed), root)
    plan = PLAN
    if name != "broker-orders":
        plan = json.loads((golden_stores.GOLDEN / name / "plan.json").read_text(encoding="utf-8"))
    places_before = readable(root)
    with open_store(root) as store:
        summary = list(check(store))[-1]
    incident = summary.incident
    forecast = incident["lostByNextStart"].get(release[:3]) if incident is not None else {"starts": True, "messages": 0}
    account = peer.Peer(release, tmp_path).dump(plan, root)
    starts = next(row for row in account if row["t"] == "load")["ok"]
    if forecast is None or not forecast["starts"] or not starts:
        assert forecast is None or forecast["starts"] == starts
        return
    places_after = numbers(account)
    lost = [key for key, place in places_before.items() if places_after.get(key) != place]
    assert len(lost) <= forecast["messages"] + forecast.get("wrongNumbers", 0)
