"""Incidents on many kinds of stores, some with two harms at once: findings, their order, their causes and the losses.
Each state is a golden store with some bytes changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import golden_stores
import incident_states as states
import pytest
from broken_stores import zero_log_from
from handmade_stores import HandmadeStore

from engine.config import read_properties
from engine.inspection import open_store
from engine.inspection.check.consequences import of_torn_units
from engine.inspection.findings import check
from engine.rules import catalogue
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden
State = Callable[[Path], None]


@pytest.fixture
def check_harmed(golden, tmp_path):
    """``check_harmed(name, *harms)``: the findings and the summary of a golden store with these harms."""

    def build(name: str, *harms: State):
        root = tmp_path / "store"
        shutil.copytree(golden(name), root, ignore=shutil.ignore_patterns("timerwheel"))
        for harm in harms:
            harm(root)
        with open_store(root) as store:
            *results, summary = check(store)
        return results, summary

    return build


def severities_and_rules(findings) -> list[str]:
    """Return ``severity id`` of each independent finding of a note or more, and ``id<cause`` of each consequence."""
    rows = (finding for finding in findings if finding.severity != "chat")
    return [f"{row.id}<{row.caused_by}" if row.caused_by else f"{row.severity} {row.id}" for row in rows]


def remove_matching(pattern: str) -> State:
    """Return a harm that removes everything that matches the pattern."""

    def harm(root: Path) -> None:
        files = list(root.glob(pattern))
        assert files
        for path in files:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return harm


def cut(pattern: str, size: int = 0) -> State:
    """Return a harm that truncates the matching files to this size."""

    def harm(root: Path) -> None:
        for path in root.glob(pattern):
            path.write_bytes(path.read_bytes()[:size])

    return harm


def zeros(start: int, stop: int = 1 << 62) -> State:
    """Return a harm that zeroes the log in [start, stop)."""
    return lambda root: states.zero_log(root, start, stop)


# One state a row: store, harms, findings, messages lost already, messages lost by the next start of its own release.
TABLE = [
    pytest.param(
        "broker-retries-4.9.7",
        [remove_matching("config/topics.json*"), remove_matching("consumequeue/OrderEvents")],
        ["error CF03", "CQ10<CF03", "RP01<CQ10"],
        (0, 412),
        id="topics.json and a queue folder",
    ),
    pytest.param(
        "broker-retries-4.9.7",
        [cut("config/topics.json*"), remove_matching("consumequeue/OrderEvents")],
        ["error CF03", "CQ10<CF03", "RP01<CQ10"],
        (0, 412),
        id="topics.json of no bytes and a queue folder",
    ),
    pytest.param(
        "queues-gone-4.9.8",
        [zeros(900_000, 1_000_000)],
        ["error CL01", "error CL04", "error CQ10", "IX10<CQ10"],
        (0, 639),
        id="all queues and a stretch of the log",
    ),
    pytest.param(
        "broker-retries-4.9.7",
        [lambda root: states.cut_queues(root, 200_000, "OrderEvents")],
        ["error CQ10", "CF02<CQ10", "RP01<CQ10"],
        (0, 92),
        id="the tail of a topic's queues",
    ),
    pytest.param(
        "clean-4.9.8",
        [remove_matching("commitlog/*1048576")],
        ["error CL07"],
        (2001, 0),
        id="the last file of the log",
    ),
    pytest.param(
        "broker-crash",
        [remove_matching("commitlog/*3145728"), remove_matching("commitlog/*2097152")],
        ["error CL07", "warn AB01"],
        (889, 0),
        id="the last file of the log in a crash",
    ),
    pytest.param(
        "broker-lmq",
        [states.simple_folder_of_a_batch_queue],
        ["error CQ11"],
        (0, 0),
        id="a queue with folders of either kind",
    ),
    pytest.param(
        "clean-4.9.8",
        [remove_matching("consumequeue/orders/0/*12000")],
        ["error CQ01", "error RP01"],
        (0, 300),
        id="a file in the middle of a queue",
    ),
    pytest.param(
        "batchcq-5.3.3",
        [remove_matching("batchconsumequeue/bcq2/0/*09200")],
        ["error CQ01", "error RP01"],
        (0, 436),  # in 100 units
        id="a file in the middle of a batch queue",
    ),
    pytest.param(
        "broker-retries-4.9.7",
        [lambda root: states.cut_queues(root, 200_000)],
        ["error CQ10", "CF02<CQ10", "CF02<CQ10", "CF09<CQ10", "CF09<CQ10", "CF09<CQ10"],
        (0, 0),
        id="the tail of all queues, delay levels among them",
    ),
    pytest.param(
        "broker-retries-4.9.7",
        [zeros(200_000)],
        ["error CL11", "CF09<CL11", "CF09<CL11", "CF09<CL11", "CL06<CL11"],
        (254, 0),
        id="the tail of a log with delay levels",
    ),
    pytest.param(
        "broker-lmq",
        [remove_matching("consumequeue/%LMQ%room-2")],
        ["error CQ10", "RP01<CQ10"],
        (0, 42),
        id="a light queue",
    ),
    pytest.param(
        "broker-lmq",
        [states.crashed, remove_matching("consumequeue/%LMQ%*")],
        ["warn AB01", "note CQ10"],
        (0, 0),
        id="all light queues in a crash",
    ),
    pytest.param(
        "clean-4.9.8",
        [zeros(1_048_476, 1_048_576)],
        ["error CL01", "error CL04", "CQ09<CL04", "IX06<CL04"],
        (0, 2001),
        id="the end of a log file and of its last unit",
    ),
    pytest.param(
        "first-files-deleted-5.3.3",
        [states.crashed, lambda root: states.set_checkpoint(root, physic=1, logics=1, index=1)],
        ["warn AB01", "note CK03"],
        (0, 0),
        id="a checkpoint of another age",
    ),
    pytest.param(
        "batchcq-5.3.3",
        [zeros(1_200_000)],
        ["error CL11", "CL06<CL11"],
        (205, 0),
        id="the end of a log of batches",
    ),
]


@pytest.mark.full_form(keep=5)
@pytest.mark.parametrize(("name", "harms", "rules", "lost"), TABLE)
def test_an_incident_is_reported_by_its_cause_with_its_losses(check_harmed, name, harms, rules, lost):
    results, summary = check_harmed(name, *harms)
    assert severities_and_rules(results) == rules
    release = golden_stores.release_of(name)
    assert summary.incident["lostAlready"]["messages"] == lost[0]
    assert summary.incident["lostByNextStart"][release]["messages"] == lost[1]


def test_all_messages_of_a_lost_file_are_counted(check_harmed):
    """Only 256 messages of each queue were counted."""
    findings, _ = check_harmed("clean-4.9.8", remove_matching("commitlog/*1048576"))
    assert "2,001 messages lost: " in findings[0].message
    assert findings[0].evidence["queueEntries"] == 2001


def test_messages_of_batches_are_counted_alike(check_harmed):
    """CL11 reported 69 messages, but the incident reported 205 lost already."""
    results, _ = check_harmed("batchcq-5.3.3", zeros(1_200_000))
    assert results[0].evidence["messages"] == 205


def test_a_store_with_folders_of_either_kind_does_not_start(check_harmed):
    """One folder hid the other, and the plan said that the broker would start."""
    _, summary = check_harmed("broker-lmq", states.simple_folder_of_a_batch_queue)
    assert not summary.incident["lostByNextStart"]["5.3"]["starts"]
    assert summary.incident["lostByNextStart"]["4.9"]["starts"]


def test_undispatched_units_are_counted_for_the_stores_own_release(check_harmed):
    """5.3 dispatches 5 of these 98 again, 4.9 dispatches 6. The finding used 5.3, and RP01 used 4.9."""
    results, _ = check_harmed("broker-retries-4.9.7", lambda root: states.cut_queues(root, 200_000, "OrderEvents"))
    assert results[0].evidence["leftOut"] == 92
    assert "dispatches 6 of them again and leaves 92 out for good" in results[0].message


def test_bytes_that_other_queues_know_did_not_come_back_after_a_cut(check_harmed):
    """The last file of one queue was lost, and the check reported that a recovery had cut the log."""
    results, _ = check_harmed("clean-4.9.8", remove_matching("consumequeue/orders/0/*24000"))
    assert results[0].id == "CQ10"
    assert "came back" not in results[0].message


def test_the_place_of_a_queue_that_ends_early_is_in_a_file_of_it(check_harmed):
    """A queue that had lost more than its last file was reported at position -3,280."""
    results, _ = check_harmed("crash-late-5.3.3", lambda root: states.cut_queues(root, 3_000_000, "orders"))
    finding = next(item for item in results if item.id == "CQ10" and "orders/0" in item.message)
    assert 0 <= finding.offset < Path(finding.file).stat().st_size


def test_an_empty_file_that_a_start_fills_is_no_error(check_harmed):
    """Both releases start and continue in this file, but the check exited with 1."""
    results, summary = check_harmed("clean-4.9.8", lambda root: states.zero_queue_file(root, "orders/0", 30_000))
    assert severities_and_rules(results) == ["note CQ06"]
    assert summary.incident is None


def test_a_file_of_zeros_that_a_start_takes_for_an_entry_is_an_error(check_harmed):
    """A queue had one file of zeros, and the check said nothing. Consumers of the queue waited at its entry 0."""

    def empty_queue(root: Path) -> None:
        (root / "consumequeue/orders/9").mkdir()
        states.zero_queue_file(root, "orders/9", 0)

    results, summary = check_harmed("clean-4.9.8", empty_queue)
    assert severities_and_rules(results) == ["error CQ06"]
    assert results[0].kind == "counted"
    assert "storescope repair" in str(summary.incident["firstSteps"])


def test_index_files_in_another_order_of_names_are_one_finding(check_harmed):
    """The entries were reported as leading to no unit: the files were read in the order of their names together
    with the log.
    """
    results, _ = check_harmed("first-files-deleted-5.3.3", states.index_files_turned_round)
    assert severities_and_rules(results) == ["warn IX11"]


def test_a_lost_found_folder_is_named_as_such(check_harmed):
    """The suggested step was to look for a missing file of the log."""
    results, summary = check_harmed("clean-4.9.8", lambda root: (root / "commitlog" / "lost+found").mkdir())
    assert severities_and_rules(results) == ["error CL07"]
    assert "Move it out" in summary.incident["firstSteps"][1]["text"]
    assert summary.incident["whatHappened"].startswith("The folder lost+found is among the store's files")


@pytest.mark.parametrize("lost", ["consumequeue/%LMQ%room-2", "consumequeue/%LMQ%*"])
def test_dispatch_makes_light_queues_again(lost, golden, tmp_path, capsys):
    """A lost light queue counted as a deleted topic, and if all were lost, none was rebuilt."""
    from engine.cli.main import main

    root = shutil.copytree(golden("broker-lmq"), tmp_path / "store", ignore=shutil.ignore_patterns("timerwheel"))
    names = sorted(path.name for path in (root / "consumequeue").iterdir())
    remove_matching(lost)(root)
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    assert sorted(path.name for path in (root / "consumequeue").iterdir()) == names
    capsys.readouterr()


def test_the_first_step_belongs_to_the_cause(check_harmed):
    """The first step was to compare a torn unit at the new end of the log, although the tail was lost."""
    _, summary = check_harmed("broker-pop", states.crashed, zeros(430_000))
    assert summary.incident["whatHappened"].endswith("(CL11).")
    assert summary.incident["firstSteps"][1]["text"].startswith("Look for the lost bytes on a replica")


TABLES = [
    pytest.param("timermetrics", ["error CF01"], False, id="timermetrics"),
    pytest.param("transactionMetrics", ["warn CF01"], True, id="transactionMetrics"),
    pytest.param("topics.json", ["error CF01"], False, id="topics.json"),
]


@pytest.mark.parametrize(("name", "rules", "starts"), TABLES)
def test_the_severity_of_a_torn_table_follows_its_effect_on_a_start(check_harmed, name, rules, starts):
    """For timermetrics the check said that a broker does not start, but the plan said that it would."""
    findings, summary = check_harmed("broker-pop", cut(f"config/{name}*", 40))
    assert severities_and_rules(findings)[:1] == rules
    assert summary.incident["lostByNextStart"]["5.3"]["starts"] == starts
    assert ("does not start" in findings[0].message) == (not starts)


def test_commands_contain_the_configuration_of_the_check(golden, tmp_path, capsys):
    """The log is in two folders. Without the configuration, dispatch would build the queues from one half."""
    from engine.cli.main import main

    root = shutil.copytree(golden("crash-late-5.3.3"), tmp_path / "store")
    (root / "log2").mkdir()
    for file in sorted((root / "commitlog").iterdir())[1::2]:
        file.rename(root / "log2" / file.name)
    conf = tmp_path / "the broker.conf"
    conf.write_text(f"storePathCommitLog={root}/commitlog,{root}/log2\n")
    assert main(["check", str(root), "--config", str(conf)]) == 1
    out = capsys.readouterr().out
    ours = [line for line in out.splitlines() if "storescope " in line]
    assert len(ours) >= 4
    assert all(f"{root} --config '{conf}'" in line for line in ours)


def test_without_a_log_the_next_start_loses_the_queues_messages(check_harmed):
    """Nothing is lost yet if only the log's disk is not mounted. The losses of a start could not be computed."""
    results, summary = check_harmed("clean-4.9.8", remove_matching("commitlog/*"))
    assert severities_and_rules(results) == ["error CL12"]
    assert summary.incident["lostAlready"] is None
    assert summary.incident["lostByNextStart"]["4.9"]["messages"] == 3991
    assert summary.incident["firstSteps"][1]["text"].startswith("Mount the disk of the log")


def test_gaps_of_a_log_with_an_unmounted_folder_are_its_consequences(golden, tmp_path):
    root = shutil.copytree(golden("crash-late-5.3.3"), tmp_path / "store")
    for file in sorted((root / "commitlog").iterdir())[1::2]:
        file.unlink()
    (root / "log2").mkdir()
    (tmp_path / "conf").write_text(f"storePathCommitLog={root}/commitlog,{root}/log2\n")
    with open_store(root, read_properties(tmp_path / "conf")[0]) as store:
        *results, _ = check(store)
    assert severities_and_rules(results)[:4] == ["error CL12", "CL07<CL12", "CL07<CL12", "RP02<CL12"]


def test_dispatch_restores_queues_that_were_lost_with_the_topics_table(golden, tmp_path, capsys):
    """An empty table listed no topic, so each lost folder counted as that of a deleted topic."""
    from engine.cli.main import main

    root = shutil.copytree(golden("broker-retries-4.9.7"), tmp_path / "store")
    cut("config/topics.json*")(root)
    remove_matching("consumequeue/OrderEvents")(root)
    assert main(["dispatch", str(root), "--yes", "--quiet"]) == 0
    assert len(list((root / "consumequeue" / "OrderEvents").iterdir())) == 4
    capsys.readouterr()


@pytest.mark.parametrize("lost_count", [1, 5])
def test_queue_entries_after_the_end_are_one_lost_tail(tmp_path, lost_count):
    handmade_store = HandmadeStore()
    for number in range(60):
        handmade_store.put(keys=f"K{number}")
    root = handmade_store.write(tmp_path / "s")
    zero_log_from(root, handmade_store.units[-lost_count].offset)
    with open_store(root) as store:
        findings = [
            finding
            for finding in check(store)
            if isinstance(finding, Finding) and finding.severity in {"warn", "error"}
        ]
    (tail,) = [finding for finding in findings if finding.id == "CL11"]
    assert tail.evidence["messages"] == lost_count
    assert tail.message.startswith(
        f"The last {lost_count} messages are lost" if lost_count > 1 else "The last message is lost"
    )
    assert tail.offset == handmade_store.units[-lost_count].offset
    assert not [finding for finding in findings if finding.id == "CQ13"]


def test_an_entry_that_leads_to_torn_properties_follows_from_them():
    of_unit = catalogue.CQ09.finding("tags", None, 1, {"expected": {"physicalOffset": 640}})
    of_other = catalogue.CQ09.finding("tags", None, 1, {"expected": {"physicalOffset": 700}})
    key = catalogue.IX06.finding("key", None, 1, {"found": {"phyOffset": 640}})
    reported = list(of_torn_units([of_unit, of_other, key], {640}))
    assert [item.caused_by for item in reported] == ["CL04", None, "CL04"]
