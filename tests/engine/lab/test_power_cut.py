"""The power cut of a lab store: messages acknowledged under SYNC_FLUSH are never lost, recovery follows its plan, and
only the lab's own directories are changed.
"""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codec.encode import Message
from engine.codec.message import Unit
from engine.codec.unit_scan import walk
from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.inspection import open_store
from engine.inspection.findings import check
from engine.lab.acknowledged import Acknowledged
from engine.lab.lab_store import MARKER, LabStore, NotALab
from engine.lab.load import Load
from engine.lab.load_settings import LoadSettings
from engine.lab.power_cut import cut_power, finish_report, keep_disk, recover_again, timed_open
from engine.lab.power_loss_report import PowerLossReport
from engine.rules.findings import Finding
from engine.store.put_message import PutMessageStatus

TINY = {
    "mapped_file_size_commit_log": 1 << 16,
    "max_message_size": 1 << 14,
    "mapped_file_size_consume_queue": 20 * 40,
    "max_hash_slot_num": 50,
    "max_index_num": 200,
}
MODES = {
    "sync": {"flush_disk_type": "SYNC_FLUSH"},
    "async": {},
    "pool": {"transient_store_pool_enable": True, "transient_store_pool_size": 3},
    "sync pool": {"flush_disk_type": "SYNC_FLUSH", "transient_store_pool_enable": True},
}


def config_of(mode: str) -> MessageStoreConfig:
    """Return a configuration with tiny files. A start reads all of them, because they soon exceed
    commitLogRecoverMaxNum.
    """
    return replace(MessageStoreConfig(), commit_log_recover_max_num=1_000, **{**TINY, **MODES[mode]})  # type: ignore[arg-type]


TORN = {"CQ09"}
"""What RocketMQ itself leaves behind after any power loss: a queue entry torn between two sectors, whose tag's code is
gone (recovery looks at offset and size only).
"""
ALLOWED = TORN | {"CL04", "CL11", "CK02", "IX06"}
"""What RocketMQ itself leaves behind after a power loss under ASYNC_FLUSH: the text of the last unit's properties torn
(recovery checks the body's CRC only), and a full index file or a checkpoint on disk before the log that they tell of.
"""


class PutLedger:
    """Records the answer of each put, independently of the lab's own account."""

    def __init__(self) -> None:
        self.acknowledged: dict[bytes, int] = {}  # body → end in the log
        self.own = Acknowledged()

    def put(self, lab: LabStore, body: bytes, topic: str, queue: int) -> None:
        result = lab.store.put_message(Message(topic, body, queue, keys=f"k{len(self.acknowledged)}"))
        if result.status is PutMessageStatus.PUT_OK and result.append is not None:
            self.acknowledged[body] = result.append.end_offset
            self.own.ends.append(result.append.end_offset)


def bodies(root: Path) -> set[bytes]:
    """Return the bodies of all complete units of a log."""
    actual_bodies = set()
    for path in sorted((root / "commitlog").glob("*")):
        for row in walk(path.read_bytes(), int(path.name)):
            if isinstance(row, Unit):
                actual_bodies.add(row.body)
    return actual_bodies


def serious_findings(root: Path) -> set[str]:
    """Return the ids of a store's findings that are more than notes."""
    with open_store(root) as snapshot:
        return {
            finding.id
            for finding in check(snapshot)
            if isinstance(finding, Finding) and finding.severity in ("error", "warn")
        }


def used_lab_store(folder: Path, mode: str, seed: int) -> tuple[LabStore, PutLedger]:
    """Make a lab store with random puts, flushes and rolls."""
    rng = random.Random(seed)
    lab = LabStore.create(folder, config_of(mode))
    ledger = PutLedger()
    for number in range(rng.randint(20, 250)):
        body = b"%d %d " % (seed, number) + rng.randbytes(rng.choice((0, 30, 400, 5000)))
        ledger.put(lab, body, rng.choice(("Orders", "Stock")), rng.randrange(2))
        if rng.random() < 0.05:
            lab.store.services.step(
                rng.choice([name for name in lab.store.services.names if name not in ("allocate", "clean")])
            )
    return lab, ledger


@pytest.mark.crash
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_acknowledged_and_flushed_messages_survive_a_power_cut(tmp_path: Path, mode: str, seed: int) -> None:
    lab, ledger = used_lab_store(tmp_path / "lab", mode, seed)
    flushed = lab.store.positions().flushed
    report = cut_power(lab, None, [ledger.own], seed)
    repeated, elapsed = timed_open(tmp_path / "lab")
    report = finish_report(repeated, report, elapsed)
    repeated.close()
    actual_bodies = bodies(tmp_path / "lab/store")
    lost = [body for body in ledger.acknowledged if body not in actual_bodies]
    assert report.loss.messages == len(lost)
    assert report.loss.below_flushed == 0
    if mode.startswith("sync"):
        assert not lost
        assert report.loss.allowed
    assert all(ledger.acknowledged[body] > flushed for body in lost)
    assert actual_bodies <= ledger.acknowledged.keys()
    assert report.as_planned, [figure for figure in report.figures if not figure.equal]
    assert report.state_after is not None
    assert (report.state_after.units, sum(report.state_after.queues.values())) == (
        len(actual_bodies),
        len(actual_bodies),
    )
    assert report.state_before.units == len(ledger.acknowledged)
    assert serious_findings(tmp_path / "lab/store") <= (TORN if mode.startswith("sync") else ALLOWED)


@pytest.mark.crash
def test_files_created_without_a_pool_buffer_are_counted_after_buffered_ones(tmp_path: Path) -> None:
    lab = LabStore.create(tmp_path / "lab", replace(config_of("pool"), transient_store_pool_size=1))
    lab.store.services.pause("commit")
    ledger = PutLedger()
    while lab.store.positions().wrote < 5 << 16:
        ledger.put(lab, b"%d " % len(ledger.acknowledged) + bytes(2000), "Orders", 0)
    buffers = [file.has_buffer for file in lab.store.parts.files.files]
    assert True in buffers
    assert False in buffers[buffers.index(True) :], "one file has the pool's only buffer, and later ones have none"
    report = cut_power(lab, None, [ledger.own], 3)
    assert report.state_before.units == len(ledger.acknowledged)


@pytest.mark.crash
@pytest.mark.parametrize("batch", [1, 32])
def test_under_load_the_report_counts_acknowledged_messages(tmp_path: Path, batch: int) -> None:
    lab = LabStore.create(tmp_path / "lab", config_of("async"))
    load = Load(lab.store, LoadSettings(producers=3, batch=batch, keys=50, topics=3, zipf=True, body_size=100))
    load.start()
    done = threading.Event()
    while load.counts().messages < 2000:
        done.wait(0.01)
    report = cut_power(lab, load, load.acknowledged, 5, keep=0.5)
    counts = load.counts()
    repeated, elapsed = timed_open(tmp_path / "lab")
    report = finish_report(repeated, report, elapsed)
    repeated.close()
    assert report.state_after is not None
    assert report.state_before.units == counts.statuses["PUT_OK"]
    assert report.loss.messages == counts.statuses["PUT_OK"] - report.state_after.units
    assert report.loss.exact
    assert report.as_planned, [figure for figure in report.figures if not figure.equal]


@pytest.mark.crash
def test_producers_that_wait_for_the_disk_get_no_acknowledgement(tmp_path: Path) -> None:
    lab = LabStore.create(tmp_path / "lab", replace(config_of("sync"), sync_flush_timeout=3_000))
    load = Load(lab.store, LoadSettings(producers=4, body_size=100))
    load.start()
    done = threading.Event()
    while load.counts().messages < 20:
        done.wait(0.01)
    lab.store.services.pause("flush")
    while lab.store.positions().waiting < 4:
        done.wait(0.01)
    report = cut_power(lab, load, load.acknowledged, 1, keep=0.0)
    assert report.loss.messages == 0
    assert report.state_before.end_offset > report.state_before.flushed
    assert report.state_on_disk.units == load.counts().statuses["PUT_OK"]
    for thread in threading.enumerate():
        if thread.name.startswith("storescope-lab-producer"):
            thread.join(60)
            assert not thread.is_alive(), "nobody waits for ever"


def test_only_lab_stores_can_lose_power(tmp_path: Path) -> None:
    lab = LabStore.create(tmp_path / "lab", config_of("async"))
    lab.store.put_message(Message("T", b"precious"))
    (tmp_path / "lab" / MARKER).unlink()
    with pytest.raises(NotALab, match="not made by the lab"):
        cut_power(lab, None, [], 0)
    assert lab.store.put_message(Message("T", b"still works")).ok
    lab.close()
    assert bodies(tmp_path / "lab/store") == {b"precious", b"still works"}
    assert not (tmp_path / "lab/before").exists()


@pytest.mark.crash
def test_a_second_power_cut_begins_with_the_first_recovered_store(tmp_path: Path) -> None:
    ledger = PutLedger()
    lab = LabStore.create(tmp_path / "lab", config_of("sync"))
    for turn in range(4):
        for number in range(40):
            ledger.put(lab, b"%d %d " % (turn, number) + bytes(200), "T", number % 3)
        cut_power(lab, None, [ledger.own], turn)
        lab, _ = timed_open(tmp_path / "lab")
    lab.close()
    assert bodies(tmp_path / "lab/store") == ledger.acknowledged.keys()
    assert serious_findings(tmp_path / "lab/store") <= TORN


# The disk's contents are recovered again beside the store: the result is the same, and a change is detected.

TINY_AGAIN = replace(
    MessageStoreConfig(),
    mapped_file_size_commit_log=1 << 16,
    max_message_size=1 << 14,
    mapped_file_size_consume_queue=20 * 40,
    max_hash_slot_num=50,
    max_index_num=200,
)


def recovered(folder: Path) -> tuple[LabStore, PowerLossReport]:
    """Make a lab store whose power was cut and that was recovered once."""
    lab = LabStore.create(folder, TINY_AGAIN)
    for number in range(300):
        lab.store.put_message(Message(f"T{number % 3}", b"x" * 200, number % 2, keys=f"k{number}"))
        if number == 200:
            lab.store.flush()
    lab.store.wait_dispatched()
    pulled = cut_power(lab, None, [], 3, 0.4)
    keep_disk(folder)
    opened, elapsed = timed_open(folder)
    return opened, finish_report(opened, pulled, elapsed)


def test_the_same_disk_gives_the_same_store_while_the_lab_goes_on(tmp_path: Path) -> None:
    lab, report = recovered(tmp_path / "lab")
    assert report.state_after is not None
    lab.store.put_message(Message("T0", b"meanwhile"))
    repeated = recover_again(tmp_path / "lab", report)
    assert (repeated.round, repeated.same) == (2, True)
    ends = {figure.name: figure.done for figure in repeated.figures}
    assert ends["endOffset"] == report.state_after.end_offset < lab.store.positions().wrote
    assert ends["units"] == report.state_after.units
    assert not (tmp_path / "lab" / "again").exists()
    assert recover_again(tmp_path / "lab", replace(report, repeated_recovery=repeated)).round == 3
    lab.close()


def test_a_changed_disk_is_visible_in_the_figures(tmp_path: Path) -> None:
    lab, report = recovered(tmp_path / "lab")
    log = sorted((tmp_path / "lab" / "kept" / "commitlog").iterdir())[0]
    raw = bytearray(log.read_bytes())
    raw[100] ^= 0xFF  # changes the first body: its CRC is wrong, so the log ends here
    log.write_bytes(raw)
    repeated = recover_again(tmp_path / "lab", report)
    assert not repeated.same
    assert next(figure.done for figure in repeated.figures if figure.name == "endOffset") == 0
    lab.close()


def test_recovering_again_needs_a_first_recovery(tmp_path: Path) -> None:
    lab, report = recovered(tmp_path / "lab")
    lab.close()
    with pytest.raises(UsageError, match="there is no recovery yet"):
        recover_again(tmp_path / "lab", replace(report, state_after=None))
    (tmp_path / "other").mkdir()
    with pytest.raises(NotALab):
        keep_disk(tmp_path / "other")
