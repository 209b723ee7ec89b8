"""Every rule has a store on which it speaks and one on which it is silent."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from made_stores import ENTRIES, LOG_SIZE, SLOTS, MadeStore, add_key, healthy
from planted_faults import patch, read

from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import RULES
from engine.rules.findings import SNAPSHOT_FIRST, at_least

ENTRY = 40 + 4 * SLOTS


def found(root: Path, config: MessageStoreConfig | None = None) -> dict[str, list]:
    with open_store(root, config) as store:
        *findings, summary = check(store)
    assert summary.complete
    seen: dict[str, list] = {}
    for finding in findings:
        seen.setdefault(finding.id, []).append(finding)
    return seen


def log(root: Path, offset: int, data: bytes) -> None:
    patch(root / "commitlog" / f"{offset // LOG_SIZE * LOG_SIZE:020d}", offset % LOG_SIZE, data)


def zero_log_from(root: Path, offset: int) -> None:
    for file in sorted((root / "commitlog").iterdir()):
        start = int(file.name)
        keep = min(max(offset - start, 0), LOG_SIZE)
        patch(file, keep, bytes(LOG_SIZE - keep))


def queue(root: Path, topic: str = "Orders", number: int = 0, start: int = 0) -> Path:
    return root / "consumequeue" / topic / str(number) / f"{start:020d}"


def index(root: Path) -> Path:
    return min((root / "index").iterdir())


def table(root: Path, name: str, text: str) -> None:
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / name).write_text(text)


def early_blank(root: Path, made: MadeStore) -> None:
    shutil.rmtree(root)
    room = LOG_SIZE - len(made.log) % LOG_SIZE
    made.log += struct.pack(">iI", room, 0xCBD43194).ljust(room, b"\0")
    made.put()
    made.write(root)


def far_behind(root: Path, made: MadeStore) -> None:
    shutil.rmtree(root)
    made.put(step=3_600_000)
    made.write(root)
    made.write_checkpoint(root, made.units[0].store_timestamp, made.units[0].store_timestamp)


def queue_ahead(root: Path, made: MadeStore) -> None:
    """One queue has an entry more than the log: left over from a recovery that moved positions only."""
    entry = struct.pack(">qiq", made.end, 200, 0)
    patch(queue(root, "Payments", 1), 20 * made.next_offsets["Payments", 1], entry)


def index_ahead(root: Path, made: MadeStore) -> None:
    newest = max((root / "index").iterdir())
    data = bytearray(newest.read_bytes())
    add_key(data, "Orders#later", made.end + 100, made.time)
    newest.write_bytes(data)


BROKEN = {
    "CL01": lambda root, made: log(root, made.units[20].offset + 4, b"xxxx"),
    "CL02": lambda root, made: log(root, next_blank(root), struct.pack(">i", 9)),
    "CL03": lambda root, made: log(root, made.units[20].offset + 90, b"\xff"),
    "CL04": lambda root, made: log(root, made.units[20].offset + made.units[20].size - 6, bytes(6)),
    "CL05": lambda root, made: log(root, made.units[20].offset + 28, struct.pack(">q", 5)),
    "CL06": lambda root, made: log(root, made.end, b"torn bytes"),
    "CL07": lambda root, made: sorted((root / "commitlog").iterdir())[1].unlink(),
    "CL08": lambda root, made: log(root, made.units[20].offset + 56, struct.pack(">q", made.time - 10**7)),
    "CL09": lambda root, made: log(root, made.units[20].offset + 20, struct.pack(">q", 9999)),
    "CL10": early_blank,
    "CL11": lambda root, made: zero_log_from(root, made.units[50].offset),
    "CQ01": lambda root, made: patch(queue(root), 400, b"too long"),
    "CQ03": lambda root, made: patch(queue(root), 100, bytes(20)),
    "CQ04": lambda root, made: patch(queue(root), 108, struct.pack(">i", 7)),
    "CQ05": lambda root, made: patch(queue(root), 100, read(queue(root), 80, 20)),
    "CQ06": lambda root, made: queue(root, start=400).write_bytes(bytes(400)),
    "CQ08": lambda root, made: shutil.rmtree(root / "consumequeue" / "Payments"),
    "CQ09": lambda root, made: patch(queue(root), 112, struct.pack(">q", 12345)),
    "CQ10": lambda root, made: patch(queue(root), 300, bytes(100)),
    "CQ11": lambda root, made: table(
        root, "topics.json", '{"topicConfigTable":{"Orders":{"attributes":{"queue.type":"BatchCQ"}}}}'
    ),
    "TM04": lambda root, made: (root / "timerwheel").write_bytes(bytes(640)),
    "CQ12": lambda root, made: patch(queue(root), 100, read(queue(root), 20, 20)),
    "CQ13": queue_ahead,
    "IX01": lambda root, made: patch(index(root), 36, struct.pack(">i", 12)),
    "IX02": lambda root, made: patch(index(root), ENTRY + 20 * 30 + 16, struct.pack(">i", 5000)),
    "IX03": lambda root, made: patch(index(root), ENTRY + 20 * 30 + 16, struct.pack(">i", 30)),
    "IX04": lambda root, made: (root / "abort").touch(),
    "IX05": lambda root, made: max((root / "index").iterdir()).unlink(),
    "IX06": lambda root, made: patch(index(root), ENTRY + 20 * 30 + 4, struct.pack(">q", 3)),
    "IX07": index_ahead,
    "IX08": lambda root, made: index(root).write_bytes(bytes(36) + b"\0\0\0\7" + bytes(100)),
    "IX09": lambda root, made: patch(index(root), ENTRY + 20 * 58 + 16, struct.pack(">i", 0)),
    "CK01": lambda root, made: patch(root / "checkpoint", 0, bytes(8)),
    "CK02": lambda root, made: patch(root / "checkpoint", 8, struct.pack(">q", made.time + 1)),
    "CK03": far_behind,
    "CK04": lambda root, made: patch(root / "checkpoint", 32, struct.pack(">q", made.end + 1)),
    "CK05": lambda root, made: (root / "checkpoint").write_bytes(b"short"),
    "CF01": lambda root, made: table(root, "topics.json", '{"dataVersion":{'),
    "CF02": lambda root, made: table(root, "consumerOffset.json", '{"offsetTable":{"Orders@g":{0:99999}}}'),
    "CF04": lambda root, made: table(root, "topics.json", "{} left over"),
    "CF05": lambda root, made: None,
    "AB01": lambda root, made: (root / "abort").write_bytes(b"123"),
    "DK02": lambda root, made: (root / "dledger-n0").mkdir(),
    "DK01": lambda root, made: (root / "commitlog" / "readme.txt").write_text("x"),
}
CONFIG = {"CF05": MessageStoreConfig(mapped_file_size_commit_log=8192, given=frozenset({"mappedFileSizeCommitLog"}))}


def next_blank(root: Path) -> int:
    with open_store(root) as store:
        return next(i.offset for i in store.units() if type(i).__name__ == "Blank")


@pytest.fixture
def made():
    return healthy()


@pytest.fixture
def root(tmp_path, made):
    return made.write(tmp_path / "store")


def test_a_healthy_store_gives_no_finding(root):
    assert found(root) == {}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_speaks_on_the_broken_store(rule, root, made):
    BROKEN[rule](root, made)
    seen = found(root, CONFIG.get(rule))
    assert rule in seen, {id_: [f.message for f in findings] for id_, findings in seen.items()}
    for findings in seen.values():
        for finding in findings:
            assert finding.record()["type"] == "finding"
            assert finding.next_step.startswith(SNAPSHOT_FIRST) == at_least(finding.severity, "warn")


def test_rocksdb_queues_are_not_taken_for_missing_ones(root):
    shutil.rmtree(root / "consumequeue")
    (root / "consumequeue").mkdir()
    (root / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    (root / "consumequeue" / "MANIFEST-000004").write_bytes(b"m")
    assert set(found(root)) == {"DK02"}


def test_every_rule_has_a_broken_store():
    assert set(BROKEN) == set(RULES)
    assert ENTRIES > 58


def test_only_the_named_rules_are_told(root, made):
    BROKEN["CL03"](root, made)
    (root / "abort").touch()
    with open_store(root) as store:
        findings = list(check(store, only={"AB01"}))
    assert [f.id for f in findings[:-1]] == ["AB01"]
    assert findings[-1].counts == {"chat": 0, "note": 0, "warn": 1, "error": 0}


CONFS = [
    pytest.param({"mapped_file_size_commit_log": 8192}, "mappedFileSizeCommitLog", "error", id="log"),
    pytest.param({"mapped_file_size_consume_queue": 20}, "mappedFileSizeConsumeQueue", "error", id="entries for bytes"),
    pytest.param({"max_hash_slot_num": 7, "max_index_num": 60}, "maxHashSlotNum maxIndexNum", "error", id="index"),
    pytest.param({"max_hash_slot_num": 7}, "maxHashSlotNum", "note", id="half of the index"),
    pytest.param({"store_path_root_dir": "/elsewhere"}, "storePathRootDir", "note", id="root"),
    pytest.param({"store_path_commit_log": "/elsewhere"}, "storePathCommitLog", "note", id="log folder"),
]


@pytest.mark.parametrize(("values", "keys", "severity"), CONFS)
def test_a_configuration_that_does_not_fit_is_the_only_error(root, values, keys, severity):
    seen = found(root, MessageStoreConfig(**values, given=frozenset(keys.split())))
    assert [f.severity for f in seen.pop("CF05") if f.evidence["keys"][0] in keys.split()] == [severity]
    assert not any(at_least(f.severity, "warn") for findings in seen.values() for f in findings)


def test_entries_taken_for_bytes_are_named(root):
    given = frozenset({"mappedFileSizeConsumeQueue"})
    seen = found(root, MessageStoreConfig(mapped_file_size_consume_queue=20, given=given))
    assert any("20 entries of 20 bytes were meant" in f.message for f in seen["CF05"])


class StopAtOnce:
    def is_set(self):
        return True


def test_a_check_that_is_stopped_says_so(root):
    with open_store(root) as store:
        *_, summary = check(store, cancel=StopAtOnce())
    assert not summary.complete


def test_progress_reaches_the_end(root):
    seen: list[tuple[int, int]] = []
    with open_store(root) as store:
        list(check(store, progress=lambda done, whole: seen.append((done, whole))))
    assert seen[-1][0] == seen[-1][1] > 0


def test_a_damaged_unit_tells_the_entries_that_lead_into_it(root, made):
    BROKEN["CL01"](root, made)
    (finding,) = found(root)["CL01"]
    unit = made.units[20]
    assert finding.offset == unit.offset
    assert finding.evidence["queueEntries"] == 1
    assert finding.evidence["indexEntries"] == len(unit.keys)
    assert finding.evidence["firstQueueEntry"] == f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"


def test_a_wrong_crc_names_the_flipped_bit(root, made):
    at = made.units[20].offset + 90
    log(root, at, bytes([made.log[at] ^ 0x04]))
    (finding,) = found(root)["CL03"]
    assert finding.evidence["bytePositions"] == [at]
    assert "bit 2 of byte 2 of the body" in finding.message


def test_a_topic_that_was_deleted_and_made_again_is_healthy(tmp_path):
    made = MadeStore()
    for _ in range(12):
        made.put("Orders", 0)
    made.next_offsets.clear()
    old, made.units = made.units, []
    for _ in range(5):
        made.put("Orders", 0)
    root = made.write(tmp_path, index=False)
    assert len(old) == 12
    assert set(found(root)) <= {"CQ08"}
