"""Effects of the next start, computed from what the check has already read."""

from __future__ import annotations

import json
import random
import shutil

import agree
import golden_stores
import incident_states as states
import numpy as np
import pytest

from engine.cli.main import main
from engine.codec.dtypes import BATCH_CQ_UNIT
from engine.errors import CannotRead, Undecoded
from engine.inspection import findings, open_store, recovery, start_losses
from engine.inspection.block_scan import scan_log
from engine.inspection.check import next_start
from engine.inspection.check.next_start import StartEffects
from engine.inspection.findings import check
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden


@pytest.fixture
def built(golden, tmp_path):
    """``built(state)``: the broker's store in the state of an incident."""
    return lambda state: states.build(golden("broker-orders"), tmp_path / "store", state)


def of_rule(findings, rule):
    return [finding for finding in findings if finding.id == rule]


LEFT_OUT_ENTRIES = [
    pytest.param({("OrderEvents", 0): 226}, ("note", "CQ10"), id="of this queue"),
    pytest.param({("OrderEvents", 0): 225, ("OrderEvents", 1): 500}, ("error", None), id="more of another one"),
]


@pytest.mark.parametrize(("left_out", "expected"), LEFT_OUT_ENTRIES)
def test_a_finding_about_another_queue_is_not_taken_as_the_cause(built, left_out, expected):
    """The sums of both findings were compared, so a queue's loss could hide behind another queue's."""
    with open_store(built(states.hole)) as store:
        starts = StartEffects(store)
        items = [item for item in check(store) if isinstance(item, Finding)]
        starts.left_out |= left_out
        (finding,) = of_rule(next_start.loss_findings(store, starts, items), "RP01")
    assert (finding.severity, finding.caused_by) == expected


def handed_over(root, monkeypatch):
    """Return the losses of both plans by the check's data, the same by the whole log, and the offsets where reads
    began.
    """
    begun, saved = [], []

    class RecordedStarts(next_start.StartEffects):
        def __init__(self, store):
            super().__init__(store)
            saved.append(self)

    def seen(log, start, *args, **options):
        begun.append(start)
        return scan_log(log, start, *args, **options)

    with monkeypatch.context() as patch, open_store(root) as store:
        patch.setattr(findings, "StartEffects", RecordedStarts)
        list(check(store))
        starts = saved[-1]
        patch.setattr(start_losses, "scan_log", seen)
        starts._losses = None
        losses = [starts.losses(release) for release in starts.releases]
        theirs = [recovery.plan(store, release) for release in starts.releases if starts.plan(release) is not None]
    return [plan for plan in losses if plan is not None], theirs, begun


STATES = [
    states.hole,
    states.tail_not_dispatched,
    states.tail_of_next_to_last_file,
    states.pages_of_queues_lost,
    states.pages_lost_and_closed,
    states.queue_folder_lost,
    states.index_behind_the_checkpoint,
    states.magic_code_lost,
    states.tail_of_log_zero,
    states.middle_file_lost,
]


@pytest.mark.full_form(keep=5)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_the_checks_data_give_the_same_plans_as_the_log(built, monkeypatch, state):
    ours, theirs, _ = handed_over(built(state), monkeypatch)
    assert len(ours) == 2
    assert ours == theirs


@pytest.mark.full_form(keep=5)
@pytest.mark.parametrize("seed", range(12))
def test_the_checks_data_give_the_same_plans_for_any_damage(golden, tmp_path, monkeypatch, seed):
    """Pages of the queues and of the log are zeroed or overwritten, tails cut, folders removed, with and without
    abort.
    """
    rng = random.Random(seed)
    root = tmp_path / "store"
    name = rng.choice(("broker-orders", "batchcq-5.3.3", "first-files-deleted-5.3.3", "crash-4.9.8"))
    shutil.copytree(golden(name), root)
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(("consumequeue", "consumequeue", "commitlog"))
        file = rng.choice(sorted(path for path in (root / kind).rglob("*") if path.is_file()))
        size = file.stat().st_size
        position, span = rng.randrange(max(size, 1)), rng.choice((20, 400, 4096))
        with file.open("r+b") as opened:
            opened.seek(position // 20 * 20)
            opened.write(
                bytes(min(span, size - position)) if rng.random() < 0.7 else rng.randbytes(min(span, size - position))
            )
        if kind == "consumequeue" and rng.random() < 0.2:
            shutil.rmtree(file.parent)
    if rng.random() < 0.5:
        (root / "abort").write_text("1")
    ours, theirs, _ = handed_over(root, monkeypatch)
    assert ours == theirs


def test_the_plans_of_a_check_read_the_log_once_from_the_first_missing_unit(built, monkeypatch):
    """Each release's plan read the log again after the check had read it, and the answers about an incident once
    more.
    """
    root = built(states.tail_of_next_to_last_file)
    plan_losses, _, read_offsets = handed_over(root, monkeypatch)
    first_missing = plan_losses[0].undispatched.first_unit
    assert len(read_offsets) > 2
    first_third = read_offsets[: len(read_offsets) // 3]
    assert first_third
    assert min(first_third) == first_missing


def start_findings(root):
    with open_store(root) as store:
        *results, _ = check(store)
    return results


def planned(root, release="5.3"):
    with open_store(root) as store:
        return recovery.plan(store, release)


UNDISPATCHED = [
    pytest.param(states.hole, 226, {"OrderEvents/0": (200, 425)}, None, id="467"),
    pytest.param(states.tail_of_next_to_last_file, 42, {"OrderEvents/2": (366, 369)}, "CQ10", id="1434"),
    pytest.param(states.pages_of_queues_lost, 597, {"OrderEvents/1": (168, 314)}, "CQ10", id="678"),
    pytest.param(states.queue_folder_lost, 370, {"OrderEvents/2": (0, 369)}, "CQ10", id="folder"),
]


@pytest.mark.parametrize(("state", "messages", "some", "cause"), UNDISPATCHED)
def test_units_that_no_start_dispatches_are_an_error_once(built, state, messages, some, cause):
    """The broker starts, and these messages are lost permanently. No finding said so, and the advice caused it."""
    root = built(state)
    observed = start_findings(root)
    (finding,) = of_rule(observed, "RP01")
    assert finding.caused_by == cause
    (grave,) = of_rule(observed, cause or "RP01")
    assert (grave.severity, finding.severity) == ("error", "note" if cause else "error")
    assert finding.evidence["messages"] == grave.evidence.get("leftOut", messages) == messages
    assert finding.message.startswith(f"{messages:,} messages of ")
    assert grave.command == f"storescope dispatch {root} --to NEW"
    rows = {f"{row['topic']}/{row['queueId']}": row for row in finding.evidence["queues"]}
    for name, span in some.items():
        assert (rows[name]["firstQueueOffset"], rows[name]["lastQueueOffset"]) == span
        assert rows[name]["firstTimestamp"] <= rows[name]["lastTimestamp"]
    plan = planned(root)
    assert plan.undispatched.messages == messages
    assert plan.record()["undispatched"]["queues"] == [row.record() for row in plan.undispatched.queues]


def test_units_that_a_start_dispatches_are_not_lost(built):
    root = built(states.tail_not_dispatched)
    assert of_rule(start_findings(root), "RP01") == []
    assert planned(root).undispatched.messages == 0


@pytest.mark.parametrize("release", ["5.3", "4.9"])
def test_nothing_of_a_healthy_store_is_lost(golden, release):
    for name in ("broker-orders", "clean-5.3.3", "clean-4.9.8", "batchcq-5.3.3", "lmq-5.3.3", "crash-5.3.3"):
        plan = planned(golden(name), release)
        assert plan.will_start, name
        assert (plan.undispatched.messages, plan.dropped.messages) == (0, 0), name


def test_messages_after_the_new_end_are_counted_by_queue(built):
    plan = planned(built(states.magic_code_lost))
    assert plan.dropped.messages == 307
    assert plan.units_dropped == plan.dropped.messages + states.DELETED
    assert all(row.unit >= plan.end_offset and row.first_time > 0 for row in plan.dropped.queues)


def test_index_files_that_a_start_deletes_and_does_not_make_again_are_a_warning(built, capsys):
    """With an abort file the step said that no action is needed, and the plan's text did not mention the deletion."""
    root = built(states.index_behind_the_checkpoint)
    (finding,) = of_rule(start_findings(root), "IX04")
    assert finding.severity == "warn"
    assert finding.message.startswith(
        "The next start of RocketMQ 5.3.3 deletes 11 of 16 index files with 4,349 entries; keys of units 764,533"
    )
    assert finding.command == f"storescope recover {root} --apply && storescope dispatch {root}"
    assert main(["recover", str(root), "--plan"]) == 0
    out = capsys.readouterr().out
    assert "Index files deleted  11 of 16" in out
    assert out.count("Deleted: index file ") == 11


STOPS = [
    pytest.param(states.empty_log_file, ["4.9"], "CL07", id="6904"),
    pytest.param(states.name_that_is_no_number, ["5.3", "4.9"], "DK01", id="name"),
]


@pytest.mark.parametrize(("state", "stops", "rule"), STOPS)
def test_a_condition_that_prevents_a_start_is_an_error(built, capsys, state, stops, rule):
    """check exited with 0 where the plan says that a broker does not start."""
    root = built(state)
    finding = next(item for item in start_findings(root) if item.id == rule)
    assert (finding.severity, finding.evidence["refusedBy"]) == ("error", stops)
    assert main(["check", str(root)]) == 1
    for release in ("5.3", "4.9"):
        assert main(["recover", str(root), "--plan", "--like", release]) == (release in stops)
    capsys.readouterr()
    assert main(["recover", str(root), "--plan"]) == ("5.3" in stops)
    out = capsys.readouterr().out
    for release in ("5.3", "4.9"):
        assert f"RocketMQ {release} would start: {'no' if release in stops else 'yes'}" in out


def test_the_plan_names_the_releases_and_guesses_the_writer(golden, capsys):
    for name, release in (("broker-orders", "5.3"), ("broker-orders-4.9.7", "4.9")):
        assert main(["recover", str(golden(name)), "--plan", "--json"]) == 0
        (record,) = map(json.loads, capsys.readouterr().out.splitlines())
        other_release = {"5.3": "4.9", "4.9": "5.3"}[release]
        assert [(row["release"], row["willStart"]) for row in record["releases"]] == [
            (release, True),
            (other_release, True),
        ]
        assert (record["like"], record["release"]) == (release, release)
        assert (record["writtenBy"]["release"], record["writtenBy"]["guess"]) == (release, True)
        assert main(["recover", str(golden(name)), "--plan", "--json", "--like", "4.9"]) == 0
        (record,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert [row["release"] for row in record["releases"]] == ["4.9"]


def test_equal_blockers_are_reported_once_with_their_files(golden, tmp_path, capsys):
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeConsumeQueue=300000\nmappedFileSizeCommitLog=1048576\n")
    assert main(["recover", str(golden("broker-orders")), "--plan", "--like", "5.3", "--config", str(conf)]) == 1
    out = capsys.readouterr().out
    assert out.count("expected a file of 300,000 bytes, found 6,000 bytes") == 1
    assert out.count("length not matched message store config value") == 1
    assert "files: " in out


def test_the_end_of_the_log_is_described(golden):
    plan = planned(golden("broker-retries"), "4.9")
    assert "version-2 unit" in plan.end_reason
    assert plan.dropped.messages == plan.units_dropped


def test_no_findings_about_queues_in_a_rocksdb(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    shutil.rmtree(root / "consumequeue")
    (root / "consumequeue").mkdir()
    (root / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    (root / "consumequeue" / "MANIFEST-000004").write_bytes(b"m")
    with pytest.raises(CannotRead):
        planned(root)
    assert of_rule(start_findings(root), "RP01") == []


def test_no_findings_about_a_dledger_log(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    data = root / "dledger-n0" / "data"
    data.mkdir(parents=True)
    shutil.move(min((root / "commitlog").iterdir()), data / f"{0:020d}")
    shutil.copytree(root / "dledger-n0", root / "dledger-n1")  # nobody knows which of them a broker uses
    shutil.rmtree(root / "commitlog")
    (root / "commitlog").mkdir()
    with pytest.raises(Undecoded, match="unknown: the messages are in a DLedger log"):
        planned(root)
    fingerprint_before = golden_stores.fingerprint(root)
    assert not {"RP01", "CL11", "CL12", "CQ13", "IX07"} & {finding.id for finding in start_findings(root)}
    assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(root)) == []


def test_a_confirm_offset_after_the_end_of_the_log_is_described(built):
    """CK04 refers the reader to the plan, which did not mention it."""
    root = built(lambda store: states.set_checkpoint(store, confirm=9_000_000))
    (note,) = planned(root).notes
    assert note.startswith("The checkpoint's confirm offset 9,000,000 is after the end of the log")


def test_a_consequence_keeps_its_severity_if_its_cause_is_not_checked(built, capsys):
    """``check --only RP01`` exited with 0: undispatched messages were a note below a rule that was not checked."""
    root = built(states.pages_of_queues_lost)
    assert main(["check", str(root), "--only", "RP01", "--json"]) == 1
    record = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (record["severity"], record["causedBy"]) == ("error", None)
    assert record["command"] == f"storescope dispatch {root} --to NEW"
    assert main(["check", str(root), "--only", "CQ10,RP01", "--json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()[:-1]]
    assert [(row["id"], row["causedBy"]) for row in records] == [("CQ10", None), ("RP01", "CQ10")]


def test_a_batch_unit_is_lost_with_all_its_messages(golden, tmp_path):
    """A batch unit was counted as one message."""
    root = tmp_path / "store"
    shutil.copytree(golden("batchcq-5.3.3"), root)
    file = root / "batchconsumequeue" / "bcq2" / "0" / f"{9200:020d}"
    rows = np.frombuffer(file.read_bytes(), BATCH_CQ_UNIT)
    file.unlink()
    (row,) = planned(root).undispatched.queues
    assert (row.topic, row.queue_id, row.units, row.messages) == ("bcq2", 0, len(rows), int(rows["batch_size"].sum()))
    assert (row.first_offset, row.last_offset) == (
        int(rows["msg_base_offset"][0]),
        int(rows["msg_base_offset"][-1] + rows["batch_size"][-1]) - 1,
    )
    assert row.messages > row.units > 0


def test_entries_of_a_light_queue_are_among_the_losses_of_the_start(golden, tmp_path):
    """CQ10 said that no start dispatches these entries, but the start's losses were empty."""
    root = tmp_path / "store"
    shutil.copytree(golden("broker-lmq"), root)
    with open_store(root) as store:
        entries = len(list(store.topics()["%LMQ%room-2"][0].entries()))
    shutil.rmtree(root / "consumequeue" / "%LMQ%room-2")
    with open_store(root) as store:
        *findings, summary = check(store)
    finding = next(undispatched_finding for undispatched_finding in findings if undispatched_finding.id == "CQ10")
    start = summary.incident["lostByNextStart"]["5.3"]
    lost = {(loss_row["topic"], loss_row["queueId"]): loss_row["messages"] for loss_row in start["queues"]}
    assert lost == {("%LMQ%room-2", 0): finding.evidence["leftOut"]}
    assert start["messages"] == finding.evidence["leftOut"] == entries
    assert [start_finding.caused_by for start_finding in findings if start_finding.id == "RP01"] == ["CQ10"]


@pytest.fixture
def past_ten(golden):
    return golden("queues-gone-past-ten-files-5.5.1")


def findings_of(store, *options):
    records = agree.records_of("check", store, *options)
    return {record["id"]: record for record in records if record["type"] == "finding"}, records[-1]["incident"]


@pytest.mark.golden
def test_units_before_the_last_ten_files_are_an_error_with_a_remedy(past_ten):
    """Since 5.4 a start reads back at most ten log files. The check promised 1,313 messages that no start
    dispatches.
    """
    finding_by_rule, incident = findings_of(past_ten)
    assert finding_by_rule["CQ10"]["severity"] == "error"
    assert "leaves 1,313 out for good" in finding_by_rule["CQ10"]["message"]
    assert "with commitLogRecoverMaxNum=17 it looks at all" in finding_by_rule["CQ10"]["message"]
    assert any("storescope dispatch" in (step["command"] or "") for step in incident["firstSteps"])
    lost = incident["lostByNextStart"]
    assert (lost["5.5"]["messages"], lost["5.3"]["messages"]) == (1_313, 0)
    first_queue = lost["5.5"]["queues"][0]
    assert (first_queue["topic"], first_queue["queueId"], first_queue["firstQueueOffset"]) == (
        "SCHEDULE_TOPIC_XXXX",
        2,
        0,
    )


@pytest.mark.golden
def test_a_release_that_reads_every_file_leaves_no_unit_out(past_ten):
    record, incident = findings_of(past_ten, "--release", "5.3")
    assert record["CQ10"]["severity"] != "error"
    assert incident["lostByNextStart"]["5.3"]["messages"] == 0


@pytest.mark.golden
def test_the_setting_that_the_check_names_brings_every_message_back(past_ten, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("commitLogRecoverMaxNum=17\n")
    plan = agree.records_of("recover", past_ten, "--plan", "--config", conf)[0]
    assert (plan["startOffset"], plan["undispatched"]["messages"], plan["fileLimit"]) == (0, 0, None)
    plan = agree.records_of("recover", past_ten, "--plan")[0]
    assert (plan["release"], plan["fileLimit"], plan["logFiles"]) == ("5.5", 10, 17)
    assert plan["undispatched"]["messages"] == 1_313


@pytest.mark.golden
@pytest.mark.parametrize(
    "name", ["clean-5.5.1", "broker-orders-5.5.1", "broker-tags-5.5.1", "broker-pop-5.5.1", "broker-transactions-5.4.0"]
)
def test_a_healthy_store_of_a_later_release_is_silent_above_note(golden, name):
    results, incident = findings_of(golden(name))
    assert [record["id"] for record in results.values() if record["severity"] in ("warn", "error")] == []
    assert incident is None


@pytest.mark.golden
def test_a_broker_that_was_killed_in_its_first_minute_has_no_wrong_checkpoint(golden):
    """5.5 writes the queues' time once a minute. The check warned about the zero of a young broker."""
    record, _ = findings_of(golden("broker-crash-5.5.1"))
    assert record["CK01"]["severity"] == "note"
    assert [row["id"] for row in record.values() if row["severity"] == "error"] == []
