"""The four answers about an incident: what happened, what is lost already, what the next start loses, what to do
now.
"""

from __future__ import annotations

import json
import re
import shutil
import struct

import incident_states as states
import incidents
import pytest
from broken_stores import BROKEN, CONFIG
from handmade_stores import healthy

from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import CF05, RULES
from engine.rules.causes import CAUSES, what_happened
from engine.rules.findings import SEVERITIES, at_least

pytestmark = pytest.mark.golden


@pytest.fixture
def built(golden, tmp_path):
    """``built(state)``: the broker's store in the state of an incident."""
    return lambda state: states.build(golden("broker-orders"), tmp_path / "store", state)


def incident_of(root, only=None):
    with open_store(root) as store:
        return list(check(store, only=only))[-1].incident


TABLE = [
    pytest.param(states.hole, "(CQ03).", 0, 226, "dispatch", id="467"),
    pytest.param(states.tail_not_dispatched, "The broker was killed", 0, 0, "recover", id="405"),
    pytest.param(states.tail_of_next_to_last_file, "(CQ10).", 0, 42, "dispatch", id="1434"),
    pytest.param(states.pages_of_queues_lost, "(CQ10).", 0, 597, "dispatch", id="678"),
    pytest.param(states.pages_lost_and_closed, "(CQ10).", 0, 253, "dispatch", id="678 closed"),
    pytest.param(states.queue_folder_lost, "(CQ10).", 0, 370, "dispatch", id="folder"),
    pytest.param(states.index_behind_the_checkpoint, "The broker was killed", 0, 0, "recover", id="3868"),
    pytest.param(states.magic_code_lost, "(CL01).", 1, 307, "repair", id="6767"),
    pytest.param(states.tail_of_log_zero, "(CL", 80, 0, "recover", id="tail"),
    pytest.param(states.middle_file_lost, "(CL07).", 1200, 0, "recover", id="2141"),
]


@pytest.mark.parametrize(("state", "cause", "already", "by_start", "command"), TABLE)
def test_an_incident_is_answered(built, state, cause, already, by_start, command):
    incident = incident_of(built(state))
    assert cause in incident["whatHappened"]
    assert incident["lostAlready"]["messages"] == already
    start = incident["lostByNextStart"]["5.3"]
    assert (start["starts"], start["messages"]) == (True, by_start)
    for loss in (incident["lostAlready"], start):
        assert sum(row["messages"] for row in loss["queues"]) == loss["messages"]
    steps = incident["firstSteps"]
    assert 1 <= len(steps) <= 3
    assert f"storescope {command}" in " ".join(step["command"] or "" for step in steps)
    commands = [step["command"] for step in steps if step["command"]]
    assert len(commands) == len(set(commands))


def test_losses_are_listed_by_queue(built):
    incident = incident_of(built(states.magic_code_lost))
    (row,) = incident["lostAlready"]["queues"]
    assert (row["topic"], row["queueId"], row["messages"], row["firstQueueOffset"]) == ("OrderEvents", 1, 1, 330)


def test_each_release_is_answered_for_itself(built):
    incident = incident_of(built(states.empty_log_file))
    assert incident["lostByNextStart"]["5.3"]["starts"]
    assert not incident["lostByNextStart"]["4.9"]["starts"]
    assert "00000000000003145728" in incident["lostByNextStart"]["4.9"]["why"]


def test_the_terminal_begins_with_the_answers(built, capsys):
    """The verdict and the first step were printed below all findings and rules.

    The user needs them first, so only the counts stand before them.
    """
    root = built(states.pages_of_queues_lost)
    assert main(["check", str(root)]) == 1
    counts, _, answers = capsys.readouterr().out.partition("\nIn short\n")
    assert counts.startswith("-- ")
    assert "\n" not in counts
    assert answers.index("First steps:") < answers.index("Severity")
    assert "What happened: The broker was not closed, and 4 queues lack 829 units of the log" in answers
    assert "Lost by the next start of RocketMQ 5.3 and 4.9: 597 messages" in answers
    assert "OrderEvents/1: 147, queue offsets 168 to 314, stored 2026-" in answers
    assert f"storescope dispatch {root} --to NEW" in answers


@pytest.mark.parametrize("name", ["broker-orders", "broker-orders-4.9.7", "clean-5.3.3", "batchcq-5.3.3", "lmq-5.3.3"])
def test_a_healthy_store_has_no_incident(golden, name, capsys):
    assert incident_of(golden(name)) is None
    assert main(["check", str(golden(name))]) == 0
    assert "In short" not in capsys.readouterr().out


def test_a_part_of_the_rules_has_no_answer(built):
    assert incident_of(built(states.hole), only={"CQ03"}) is None


def test_nothing_is_concluded_where_something_is_unread(golden, tmp_path, capsys):
    """One queue is a dangling link: its entries may be complete."""
    root = states.build(golden("broker-orders"), tmp_path / "store", states.hole)
    folder = root / "consumequeue" / "OrderEvents" / "1"
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / f"{0:020d}").symlink_to(tmp_path / "gone")
    main(["check", str(root), "--json"])
    *_, summary = (
        record for record in map(json.loads, capsys.readouterr().out.splitlines()) if record["type"] == "summary"
    )
    assert (summary["complete"], summary["incident"]) == (False, None)


PLACED = re.compile(r"\d|/|\w\.json|[Tt]he (checkpoint|index files)|tables below config")


@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_each_serious_rule_has_an_incident_with_a_place_and_few_steps(tmp_path, rule):
    """Only two rules named a place. The texts of the others said what may have happened somewhere."""
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN[rule](root, new_store)
    with open_store(root, CONFIG.get(rule)) as store:
        *results, summary = check(store)
    grave = any(at_least(finding.severity, "warn") for finding in results)
    assert (summary.incident is not None) == grave
    if grave:
        text = summary.incident["whatHappened"]
        assert text.endswith(".")
        clause = re.sub(r"\([A-Z]{2}\d\d\)\.$", "", text)
        if (headline := re.search(r"\(([A-Z]{2}\d\d)\)\.$", text)) is not None:
            severities = {finding.id: SEVERITIES.index(finding.severity) for finding in results}
            assert severities[headline[1]] == max(severities.values()), text
        assert text.startswith("The broker was killed") or PLACED.search(clause), text
        assert 1 <= len(summary.incident["firstSteps"]) <= 3


KINDS = [
    pytest.param(
        states.middle_file_lost,
        r"The file 00000000000001048576 of the commit log is missing, between messages stored \S+Z and \S+Z \(CL07\)\.",
        id="gap",
    ),
    pytest.param(states.empty_log_file, r"The file 0+3145728 of the commit log is empty \(CL07\)\.", id="empty"),
]


@pytest.mark.parametrize(("state", "expected_text"), KINDS)
def test_what_happened_names_the_file_and_its_defect(built, state, expected_text):
    assert re.search(expected_text, incident_of(built(state))["whatHappened"])


SPOILED = [
    pytest.param(700_000, "The file {} of the commit log was cut to 700,000 bytes, between messages", id="short"),
    pytest.param((1 << 20) + 4096, "The file {} of the commit log is longer than the others (CL07).", id="long"),
    pytest.param(0, "The file {} of the commit log is empty, between messages stored 20", id="no bytes"),
]


@pytest.mark.parametrize(("size", "expected_text"), SPOILED)
def test_what_happened_distinguishes_a_cut_file_from_a_longer_one(golden, tmp_path, size, expected_text):
    root = shutil.copytree(golden("broker-orders"), tmp_path / "store")
    file = sorted((root / "commitlog").iterdir())[1]
    with file.open("r+b") as opened:
        opened.truncate(size)
    assert expected_text.format(file.name) in f"{incident_of(root)['whatHappened']}"


def test_every_cause_is_a_rule():
    assert {rule for rule, _ in CAUSES} <= set(RULES)


def test_a_file_in_this_folder_is_not_named_in_the_root_folder():
    """``--config broker.conf`` was reported as "/broker.conf"."""
    for file, place in (("broker.conf", "broker.conf"), ("/s/conf/broker.conf", "conf/broker.conf"), ("/b", "/b")):
        finding = CF05.finding("The sizes do not fit", file, None, {}, "warn")
        assert what_happened([finding], crashed=False).endswith(f", in {place} (CF05).")


def pages_of_the_log(root):
    file = root / "commitlog" / f"{states.LAST_FILE:020d}"
    with file.open("r+b") as opened:
        opened.seek(40_960)
        opened.write(bytes(8192))


def noise_in_the_log(root):
    file = root / "commitlog" / f"{states.LAST_FILE:020d}"
    with file.open("r+b") as opened:
        opened.seek(40_960)
        opened.write(b"\xa5" * 8192)


def bit_of_a_body(root):
    """Flip one bit in the last byte of the body of a unit in the last file."""
    with open_store(root) as store:
        unit = next(u for u in store.units(2_200_000) if isinstance(u, Unit))
    file = root / "commitlog" / f"{states.LAST_FILE:020d}"
    data = bytearray(file.read_bytes())
    data[unit.offset - states.LAST_FILE + 88] ^= 4
    file.write_bytes(data)


def pages_of_a_queue(root):
    for file in sorted((root / "consumequeue" / "OrderEvents" / "0").iterdir())[:1]:
        file.write_bytes(bytes(4096) + file.read_bytes()[4096:])


def another_queue(root):
    for path in sorted((root / "consumequeue/PaymentEvents/0").iterdir()):
        shutil.copy(path, root / "consumequeue/PaymentEvents/1" / path.name)


def empty_offsets(root):
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (root / "config" / name).write_bytes(b"")


DAMAGE_TEXTS = [
    pytest.param(
        pages_of_the_log,
        r"Whole pages of the commit log from 2,138,112 on are zero \(8,192 bytes\): their "
        r"write was lost, between messages stored 20\S+Z and 20\S+Z",
        id="zeroed",
    ),
    pytest.param(noise_in_the_log, r"[\d,]+ bytes of the commit log from 2,13[78],\d+ on were overwritten", id="noise"),
    pytest.param(
        states.magic_code_lost,
        r"The head of the message at 2,2\d\d,\d+ of the commit log was changed "
        r"\(magicCode\), between messages stored",
        id="head",
    ),
    pytest.param(bit_of_a_body, r"Bits flipped in the body of the message at 2,2\d\d,\d+ of the commit log", id="flip"),
    pytest.param(
        states.hole,
        r"Entry 200 of the queue OrderEvents/0 was never written; the message there was stored 20",
        id="hole",
    ),
    pytest.param(
        pages_of_a_queue,
        r"Pages of the queue OrderEvents/0 are zero from entry 0 on: their write was lost",
        id="queue pages",
    ),
    pytest.param(
        another_queue,
        r"The queue PaymentEvents/1 has the entries of PaymentEvents/0 from entry 0 on",
        id="another queue",
    ),
    pytest.param(
        states.queue_folder_lost, r"The broker was not closed, and 1 queue has no folder \(OrderEvents/2\)", id="folder"
    ),
    pytest.param(empty_offsets, r"The table consumerOffset.json is empty: a power cut or a full disk", id="table"),
    pytest.param(
        states.tail_of_log_zero,
        r"(The commit log is zero from|A message was written only in part at) 2,\d+,\d+ "
        r".*, after a message stored 20",
        id="tail",
    ),
]


@pytest.mark.parametrize(("state", "expected_text"), DAMAGE_TEXTS)
def test_what_happened_distinguishes_the_kinds_of_damage(built, state, expected_text):
    """Torn, zeroed, flipped and lost bytes can be distinguished, but the sentence listed all of them."""
    happened = incident_of(built(state))["whatHappened"]
    assert re.match(expected_text, happened), happened


TIMED = [states.middle_file_lost, states.magic_code_lost, bit_of_a_body, states.tail_of_log_zero]


@pytest.mark.parametrize("state", TIMED)
def test_lost_messages_are_listed_with_their_times(golden, built, state):
    """The range for an unreadable message comes from its neighbours, and its own time is inside that range."""
    truth = {}
    with open_store(golden("broker-orders")) as store:
        for unit in store.units():
            if isinstance(unit, Unit):
                truth[unit.topic, unit.queue_id, unit.queue_offset] = unit.store_timestamp
    rows = incident_of(built(state))["lostAlready"]["queues"]
    assert rows
    for row in rows:
        true_times = [
            truth[row["topic"], row["queueId"], row[name]] for name in ("firstQueueOffset", "lastQueueOffset")
        ]
        assert row["firstTimestamp"] <= true_times[0] <= true_times[1] <= row["lastTimestamp"], row
        assert row["lastTimestamp"] - row["firstTimestamp"] < true_times[1] - true_times[0] + 600_000


def test_a_wrong_queue_entry_is_no_lost_message(golden, tmp_path):
    """The entry pointed after the end of the log, and its message was called lost. The log has it."""
    root = incidents.copied(golden("broker-orders"), tmp_path / "store")
    entries = root / "consumequeue" / "OrderEvents" / "0" / f"{0:020d}"
    with entries.open("r+b") as file:
        file.seek(20 * 4)
        file.write(struct.pack(">qiq", 1 << 50, 900, 7))
    incident = incident_of(root)
    assert incident["lostAlready"]["messages"] == 0
