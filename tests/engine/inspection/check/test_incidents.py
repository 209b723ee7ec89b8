"""Findings of a check after incidents: the fault, its cause, its severity, and the next step."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import incident_states
import incidents
import pytest
from handmade_stores import HandmadeStore

from engine.cli.main import main
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.samples import sample
from engine.mapped.reading import SystemDisk, read_through
from engine.rules.findings import Finding, at_least

pytestmark = pytest.mark.golden


@pytest.fixture
def orders(golden, tmp_path) -> Path:
    """A copy of the store of a closed 5.3.3 broker: 2,808 messages in 15 queues of 5 topics, 3 log files."""
    return incidents.copied(golden("broker-orders"), tmp_path / "store")


def findings_by_rule(root: Path, *, complete: bool = True) -> dict[str, list[Finding]]:
    observed: dict[str, list[Finding]] = {}
    with open_store(root) as store:
        *findings, summary = check(store)
    assert summary.complete is complete
    for finding in findings:
        observed.setdefault(finding.id, []).append(finding)
    return observed


def only(root: Path, rule: str) -> Finding:
    (item,) = findings_by_rule(root)[rule]
    return item


def grave(root: Path) -> set[str]:
    return {
        id_
        for id_, results in findings_by_rule(root).items()
        if any(at_least(finding.severity, "warn") for finding in results)
    }


# ---- the checkpoint


@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("size", [0, 1, 10, 23, 24, 40, 4095, 5000])
@pytest.mark.parametrize("abort", [False, True])
def test_a_checkpoint_of_another_length_is_named_and_the_check_goes_on(orders, size, abort):
    (orders / "checkpoint").write_bytes(bytes(size))
    if abort:
        incidents.crashed(orders)
    assert only(orders, "CK05").file == str(orders / "checkpoint")


# ---- units that are in no queue


def test_queues_that_lost_their_tail_are_one_finding_and_groups_that_know_more_follow(orders):
    lost = incidents.forget_units(orders, incidents.units(orders)[-65])
    with open_store(orders) as store:
        ends = {number: queue.max_offset for number, queue in store.topics()["OrderEvents"].items()}
    beyond = {number: end + 1 for number, end in ends.items() if number < 2}
    incidents.offsets(orders, billing={"OrderEvents": beyond}, mailing={"OrderEvents": {0: ends[0] + 9_999}})
    findings = findings_by_rule(orders)
    (cause,) = findings["CQ10"]
    assert cause.severity == "error"
    assert cause.evidence["units"] == lost == 65
    assert "the next start of RocketMQ 5.3.3 dispatches 64 of them again and leaves 1 out for good" in cause.message
    follower, lone = sorted(findings["CF02"], key=lambda finding: finding.evidence["group"])
    assert (follower.severity, follower.caused_by, follower.command) == ("note", "CQ10", None)
    assert "reset" not in follower.next_step
    assert {consequence.caused_by for consequence in findings.get("CQ06", [])} <= {"CQ10"}
    assert len(follower.evidence["queues"]) == len([n for n in beyond if beyond[n] <= ends[n] + lost])
    assert (lone.severity, lone.caused_by) == ("warn", None)


def test_units_in_front_of_the_start_file_are_lost_for_good_and_dispatch_brings_them_back(orders, tmp_path, capsys):
    """No start reads these units again: the queues end in the file before the one where a start begins."""
    units = [position for position in incidents.units(orders) if position < 2 * incidents.LOG_FILE]
    incidents.forget_units(orders, units[-37])
    incidents.crashed(orders)
    with open_store(orders) as store:
        recovery_plan = plan(store)
    assert recovery_plan.start_offset == 2 * incidents.LOG_FILE
    finding = only(orders, "CQ10")
    assert finding.severity == "error"
    assert "leaves 37 out for good" in finding.message
    assert finding.command == f"storescope dispatch {orders} --to NEW"
    assert main([*finding.command.replace("NEW", str(tmp_path / "new")).split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queues"] >= 15
    assert {path.name for path in (tmp_path / "new").iterdir()} >= {"consumequeue", "index"}
    for folder in ("consumequeue", "index"):
        shutil.rmtree(orders / folder)
        shutil.copytree(tmp_path / "new" / folder, orders / folder)
    assert grave(orders) == {"AB01"}


def test_a_queue_folder_that_was_lost_is_no_deleted_topic(orders):
    shutil.rmtree(orders / "consumequeue" / "OrderEvents" / "2")
    finding = only(orders, "CQ10")
    assert finding.message == (
        "Queue OrderEvents/2 has no folder; the log has 421 units of it · no start dispatches them again"
    )
    assert (finding.severity, finding.command) == ("error", f"storescope dispatch {orders} --to NEW")
    incidents.crashed(orders)
    with open_store(orders) as store:
        queue = next(q for q in plan(store).queues if (q.topic, q.queue_id) == ("OrderEvents", 2))
    finding = only(orders, "CQ10")
    assert finding.severity == "error"
    remaining = 421 - queue.entries_added
    assert f"dispatches {queue.entries_added} of them again and leaves {remaining} out for good" in finding.message
    assert queue.max_offset - queue.min_offset == queue.entries_added > 0


def test_a_topic_of_the_table_without_any_queue_was_lost_and_one_that_is_not_there_was_deleted(orders):
    shutil.rmtree(orders / "consumequeue" / "ShipmentEvents")
    assert "4 queues have no folder (ShipmentEvents/" in only(orders, "CQ10").message
    table = json.loads((orders / "config" / "topics.json").read_text())
    del table["topicConfigTable"]["ShipmentEvents"]
    (orders / "config" / "topics.json").write_text(json.dumps(table))
    observed = findings_by_rule(orders)
    assert "CQ10" not in observed
    assert {finding.evidence["topic"] for finding in observed["CQ08"]} == {"ShipmentEvents", "DroppedAuditTrail"}


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("broker-transactions", "RMQ_SYS_TRANS_HALF_TOPIC"),
        ("broker-transactions", "RMQ_SYS_TRANS_OP_HALF_TOPIC"),
        ("broker-retries", "SCHEDULE_TOPIC_XXXX"),
        ("broker-pop", "rmq_sys_REVIVE_LOG_*"),
    ],
)
def test_a_system_topic_cannot_have_been_deleted(golden, tmp_path, name, topic):
    root = incidents.copied(golden(name), tmp_path / "store")
    for folder in (root / "consumequeue").glob(topic):
        shutil.rmtree(folder)
    (root / "config" / "topics.json").unlink()
    assert only(root, "CQ10").severity == "error"


def test_a_restored_tail_is_distinguished_from_an_undispatched_one(orders):
    """The checkpoint of the close ends before this tail, so the log was cut there."""
    tail_offset = incidents.units(orders)[-65]
    incidents.forget_units(orders, tail_offset)
    assert "came back" not in only(orders, "CQ10").message
    with open_store(orders) as store:
        last_unit = store.log.unit_at(incidents.units(orders)[-1])
    times = bytearray((orders / "checkpoint").read_bytes())
    times[:24] = last_unit.store_timestamp.to_bytes(8, "big") * 3
    (orders / "checkpoint").write_bytes(times)
    assert "a recovery or a slave cut the log there, and the bytes came back" in only(orders, "CQ10").message


# ---- a log that lost bytes


@pytest.mark.parametrize("inside", [0, 90], ids=["between two units", "inside a unit"])
@pytest.mark.parametrize("abort", [False, True])
def test_a_lost_tail_is_reported_with_its_number_of_messages(orders, inside, abort):
    tail_offset = incidents.units(orders)[-95]
    incidents.zero_log(orders, tail_offset + inside)
    if abort:
        incidents.crashed(orders)
    findings = findings_by_rule(orders)
    (finding,) = findings["CL11"]
    assert finding.severity == "error"
    assert finding.message.startswith(
        f"The last 95 messages are lost: the log ends at {tail_offset:,}, the queues know it up to "
    )
    assert (finding.offset, finding.evidence["messages"]) == (tail_offset, 95)
    assert len(finding.evidence["witnesses"]) >= 2
    assert not {"CQ13", "IX07", "CK02", "CK04"} & set(findings)
    assert [follower.caused_by for follower in findings.get("CL06", [])] == (["CL11"] if inside else [])


def test_one_torn_unit_names_its_message(orders):
    unit_offset = incidents.units(orders)[-1]
    incidents.zero_log(orders, unit_offset + 100)
    finding = only(orders, "CL06")
    assert "1 message lost: " in finding.message
    assert finding.evidence["lost"][0]["messages"] == 1


@pytest.mark.parametrize("abort", [False, True])
def test_a_checkpoint_that_alone_knows_of_a_lost_end_is_reported_beside_a_torn_message(orders, abort):
    """The log ended within a message, and only the checkpoint was an hour ahead of it. The check dropped that, and the
    checkpoint was not corrected.
    """
    offset = incidents.units(orders)[-1]
    with open_store(orders) as store:
        unit = store.log.unit_at(offset)
        end = store.log.max_offset
    incidents.patch_log(orders, end, struct.pack(">iI", 300, 0xDAA320A7) + b"x" * 40)
    incident_states.set_checkpoint(orders, physic=unit.store_timestamp + 3_600_000)
    if abort:
        incidents.crashed(orders)
    findings = findings_by_rule(orders)
    assert findings["CK02"][0].evidence["aheadMs"] == 3_600_000
    assert findings["CL06"][0].caused_by is None
    assert "CL11" not in findings


def test_a_checkpoint_with_the_time_of_the_torn_message_is_no_finding_of_its_own():
    """The torn message says it all. The damaged sample had its checkpoint as the first error."""
    findings = findings_by_rule(sample("orders-damaged"))
    assert "CL06" in findings
    assert "CK02" not in findings


def test_a_missing_log_file_names_lost_messages_and_affected_groups(orders):
    lost = [position for position in incidents.units(orders) if position // incidents.LOG_FILE == 1]
    incidents.offsets(orders, billing={"OrderEvents": {0: 200}}, mailing={"OrderEvents": {0: 5}})
    (orders / "commitlog" / f"{incidents.LOG_FILE:020}").unlink()
    finding = only(orders, "CL07")
    assert (finding.severity, finding.evidence["queueEntries"]) == ("error", len(lost))
    assert f"{len(lost):,} messages lost: OrderEvents/" in finding.message
    assert finding.evidence["groups"] == ["billing (OrderEvents/0/200)"]
    assert "billing (OrderEvents/0/200) is one of them" in finding.message
    assert {row["queue"]: row["messages"] for row in finding.evidence["lost"]}["OrderEvents/0"] > 100


def test_damaged_bytes_name_the_lost_message(orders):
    position = incidents.units(orders)[1000]
    incidents.patch_log(orders, position, b"\xff" * 8)
    item = only(orders, "CL01")
    assert "1 message lost: " in item.message


@pytest.mark.parametrize(
    ("state", "words"),
    [("empty", "delete the empty file"), ("short", "restore the complete file"), ("long", "mappedFileSizeCommitLog")],
)
def test_each_kind_of_unusual_log_file_has_its_own_step(orders, state, words):
    {"empty": empty_last_log_file, "short": short_log_file, "long": long_log_file}[state](orders)
    (finding,) = [
        actual_finding
        for actual_finding in findings_by_rule(orders)["CL07"]
        if actual_finding.offset is not None and words in actual_finding.next_step
    ]
    assert finding.severity == "error"


def test_a_dledger_log_is_not_called_a_lost_one(orders):
    for path in (orders / "commitlog").iterdir():
        path.unlink()
    for member in ("dledger-n0", "dledger-n1"):  # it is unknown which of them a broker uses
        folder = orders / member / "data"
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(dledger_head())
    findings = findings_by_rule(orders, complete=False)  # undecoded parts are not checked
    assert "DK02" in findings
    assert not any(at_least(finding.severity, "warn") for of_rule in findings.values() for finding in of_rule)


def dledger_head() -> bytes:
    """Return the oldest entry of a DLedger log: a header followed by a message unit."""
    head = struct.pack(">iiqqqiii", 1, 200, 0, 1, 0, 0, 0, 152)
    return (head + struct.pack(">iI", 152, 0xDAA320A7)).ljust(4096, b"\0")


def test_a_queue_file_deleted_while_it_is_read_is_listed_again(orders, capsys):
    """A broker deletes old files and topics. The check continues with the remaining files."""
    removed_path = orders / "consumequeue" / "MadeBySendingOrderEvents" / "0" / f"{0:020}"

    class Broker(SystemDisk):
        def open(self, path: str) -> int:
            if path == str(removed_path):
                shutil.rmtree(removed_path.parent.parent, ignore_errors=True)
            return super().open(path)

    with read_through(Broker()):
        assert main(["check", str(orders), "--json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not [record for record in records if record["type"] == "unreadable"]
    assert records[-1]["complete"]
    assert not removed_path.exists()


# ---- entries


def test_a_unit_that_was_never_dispatched_shifts_the_queue(orders):
    incidents.shift(orders, "OrderEvents/0", 200)
    observed = findings_by_rule(orders)
    (finding,) = observed["CQ04"]
    assert finding.message.endswith(": it was never dispatched, and the 225 entries after it are one place too early")
    assert finding.evidence["queueOffset"] == 200
    assert set(observed) == {"CQ04", "CQ08"}
    assert finding.command == f"storescope dispatch {orders} --to NEW"


def test_a_gap_where_a_start_cuts_the_queue_reports_the_losses(orders):
    incidents.hole(orders, "OrderEvents/0", 320)
    with open_store(orders) as store:
        cut = next(q for q in plan(store).queues if (q.topic, q.queue_id) == ("OrderEvents", 0)).max_offset
    item = only(orders, "CQ03")
    assert (
        "the next start of RocketMQ 5.3.3 cuts the queue there: the 105 entries after it are deleted" in item.message
    ) == (cut <= 320)
    assert cut <= 320


def test_entries_of_another_queue_name_that_queue(orders):
    for path in (orders / "consumequeue" / "OrderEvents" / "0").iterdir():
        shutil.copy(path, orders / "consumequeue" / "OrderEvents" / "1" / path.name)
    assert "these are the entries of OrderEvents/0" in only(orders, "CQ04").message


def test_units_without_a_crc_are_one_finding(orders):
    for position in incidents.units(orders)[1000:1010]:
        incidents.patch_log(orders, position + 8, bytes(4))
    finding = only(orders, "CL03")
    assert finding.message.startswith("10 units from here on have CRC 0: the writer stored no CRC; ")
    assert (finding.severity, finding.evidence["units"]) == ("error", 10)


def test_zero_bytes_in_properties_are_distinguished_from_a_wrong_crc(orders):
    position = incidents.units(orders)[1000]
    with open_store(orders) as store:
        unit = store.log.unit_at(position)
    incidents.patch_log(orders, position + unit.size - 40, bytes(40))
    item = only(orders, "CL04")
    assert "40 of the " in item.message
    assert "it was written only in part; the next start of RocketMQ 5.3.3 keeps it and delivers it" in item.message


# ---- conditions that prevent a broker's start


def empty_last_log_file(root: Path) -> None:
    (root / "commitlog" / f"{3 * incidents.LOG_FILE:020}").touch()


def empty_last_queue_file(root: Path) -> None:
    path = next(incidents.queue_files(root))
    (path.parent / f"{path.stat().st_size:020}").touch()


def short_queue_file(root: Path) -> None:
    path = next(incidents.queue_files(root))
    path.write_bytes(path.read_bytes()[:-20])


def short_log_file(root: Path) -> None:
    path = root / "commitlog" / f"{incidents.LOG_FILE:020}"
    path.write_bytes(path.read_bytes()[:-4096])


def long_log_file(root: Path) -> None:
    path = root / "commitlog" / f"{2 * incidents.LOG_FILE:020}"
    path.write_bytes(path.read_bytes() + bytes(4096))


def file_of_another_name(root: Path) -> None:
    (root / "commitlog" / "nohup.out").write_text("x")


def whole_file_of_another_name(root: Path) -> None:
    (root / "commitlog" / "copy").write_bytes(bytes(incidents.LOG_FILE))


def other_name_in_a_queue(root: Path) -> None:
    (next(incidents.queue_files(root)).parent / "x.swp").write_text("x")


def folder_for_a_checkpoint(root: Path) -> None:
    (root / "checkpoint").unlink()
    (root / "checkpoint").mkdir()


def timer_wheel(root: Path) -> None:
    (root / "timerwheel").write_bytes(bytes(100))


def both_tables(root: Path) -> None:
    for name in ("topics.json", "topics.json.bak"):
        (root / "config" / name).write_text("{")


def kinds_of_queue(root: Path) -> None:
    shutil.copytree(root / "consumequeue" / "AuditTrail", root / "batchconsumequeue" / "AuditTrail")


def gap_and_no_queues(root: Path) -> None:
    (root / "commitlog" / f"{incidents.LOG_FILE:020}").unlink()
    shutil.rmtree(root / "consumequeue")


def unit_of_all_memory(root: Path) -> None:
    incidents.patch_log(root, incidents.units(root)[-3], bytes.fromhex("7fffffff"))
    incidents.crashed(root)


STATES = (
    empty_last_log_file,
    empty_last_queue_file,
    short_queue_file,
    short_log_file,
    long_log_file,
    file_of_another_name,
    whole_file_of_another_name,
    other_name_in_a_queue,
    folder_for_a_checkpoint,
    timer_wheel,
    both_tables,
    kinds_of_queue,
    gap_and_no_queues,
    unit_of_all_memory,
)


def refused(root: Path, capsys) -> None:
    """Check that the check and the plan name the same blockers, and that the exit code reports them."""
    with open_store(root) as store:
        blockers = {(b.finding, b.file): b for release in ("5.3", "4.9") for b in plan(store, release).blockers}
    assert blockers
    errors = [item for results in findings_by_rule(root).values() for item in results if item.severity == "error"]
    for blocker in blockers.values():
        (finding,) = [e for e in errors if e.evidence.get("brokerLog") == blocker.broker_log]
        assert "does not start" in finding.message
        assert finding.next_step.startswith("Take a snapshot first")
    assert len([error for error in errors if "brokerLog" in error.evidence]) == len(blockers)
    assert main(["check", str(root), "--json"]) == 1
    capsys.readouterr()


@pytest.mark.full_form(keep=7)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_condition_that_prevents_a_start_is_an_error_with_an_exit_code(orders, capsys, state: Callable[[Path], None]):
    state(orders)
    refused(orders, capsys)


def test_lost_found_does_not_prevent_the_start_of_a_5_3_broker(orders):
    """4.9 refuses lost+found. It is a note on a store that 5.3 wrote."""
    (orders / "commitlog" / "lost+found").mkdir()
    finding = only(orders, "CL07")
    assert (finding.severity, finding.evidence["refusedBy"]) == ("note", ["4.9"])


def test_an_empty_last_queue_file_that_stops_a_5_3_broker_is_an_error(tmp_path, capsys):
    store = HandmadeStore()
    for _ in range(20):
        store.put("Orders", 0)
    store.put("Half", 0, sys_flag=4)
    root = store.write(tmp_path / "store")
    (root / "consumequeue" / "Orders" / "0" / f"{400:020d}").write_bytes(bytes(400))
    refused(root, capsys)
