"""Lost ext files of queues explain wrong tag codes. Each state is built in a store that RocketMQ wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.codec import cq_ext
from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding, at_least

pytestmark = pytest.mark.golden


@pytest.fixture
def store(golden, tmp_path) -> Path:
    return Path(shutil.copytree(golden("multi-queue-ext-5.3.3"), tmp_path / "store"))


def findings_of(root: Path, least: str = "note", config: MessageStoreConfig | None = None) -> list[Finding]:
    with open_store(root, config) as opened:
        return [
            finding for finding in check(opened) if isinstance(finding, Finding) and at_least(finding.severity, least)
        ]


def ext_files(root: Path) -> list[Path]:
    return sorted(path for path in (root / "consumequeue_ext").rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", ["gone", "empty", "zero"])
def test_lost_ext_files_are_one_finding_and_wrong_tags_follow_from_it(damage, store):
    if damage == "gone":
        shutil.rmtree(store / "consumequeue_ext")
    else:
        for file in ext_files(store):
            file.write_bytes(b"" if damage == "empty" else bytes(file.stat().st_size))
    lost_files, *remainder = findings_of(store)
    assert (lost_files.id, lost_files.severity, lost_files.file) == ("CQ15", "error", str(store / "consumequeue_ext"))
    assert lost_files.command == f"storescope dispatch {store} --to NEW"
    assert {finding.id for finding in remainder} <= {"CQ09", "CQ06", "DK01", "CQ01"}
    assert all(
        finding.caused_by == "CQ15" and finding.severity == "note" for finding in remainder if finding.id == "CQ09"
    )
    assert not [finding for finding in remainder if at_least(finding.severity, "warn")]


def test_an_ext_file_that_ends_early_names_the_first_entry_after_it(store):
    lasts = [max(folder.iterdir()) for folder in {file.parent for file in ext_files(store)}]
    file = max(lasts, key=lambda path: len(path.read_bytes().rstrip(b"\0")))
    data = file.read_bytes()
    units = [unit for unit in cq_ext.walk(data, int(file.name)) if isinstance(unit, cq_ext.CqExtUnit)]
    cut = units[len(units) // 2]
    place = cut.offset - int(file.name)
    file.write_bytes(data[:place] + bytes(len(data) - place))
    finding = next(item for item in findings_of(store) if item.id == "CQ15")
    assert (finding.severity, finding.file, finding.offset) == ("error", str(file), place)
    assert f"end at {cut.offset:,}" in finding.message


def test_a_blank_first_file_is_no_finding(store):
    several = {file.parent for file in ext_files(store) if file.name != f"{0:020d}"}
    file = min(min(several).iterdir())
    file.write_bytes(bytes(file.stat().st_size))
    finding = next(item for item in findings_of(store) if item.id == "CQ15")
    assert (finding.severity, finding.evidence["queueOffset"]) == ("error", 0)


def test_units_that_no_entry_leads_to_are_a_note(store):
    file = ext_files(store)[0]
    data = bytearray(file.read_bytes())
    units = [unit for unit in cq_ext.walk(bytes(data), int(file.name)) if isinstance(unit, cq_ext.CqExtUnit)]
    position = units[-1].end - int(file.name)
    extra = cq_ext.encode(units[-1])
    data[position : position + len(extra)] = extra
    file.write_bytes(bytes(data))
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity, finding.command) == ("CQ15", "note", None)
    assert f"hold {len(extra):,} bytes after {units[-1].end:,} that no entry leads to" in finding.message


def test_units_of_long_topic_names_keep_a_store_from_going_back_to_4_9(golden):
    (finding,) = (item for item in findings_of(golden("broker-retries"), "chat") if item.id == "DK03")
    assert (finding.severity, finding.evidence["units"]) == ("chat", 8)
    assert finding.command is not None
    assert finding.command.endswith(" --plan --release 4.9")


CONFS = [
    ({"mapped_file_size_consume_queue": 300_000}, "mappedFileSizeConsumeQueue", {"mappedFileSizeConsumeQueue": 400}),
    ({"mapped_file_size_commit_log": 8192}, "mappedFileSizeCommitLog", {"mappedFileSizeCommitLog": 4096}),
    (
        {"max_hash_slot_num": 7, "max_index_num": 60},
        "maxHashSlotNum maxIndexNum",
        {"maxHashSlotNum": 20, "maxIndexNum": 60},
    ),
]


@pytest.mark.parametrize(("values", "keys", "fitting"), CONFS, ids=["queue", "log", "index"])
def test_a_wrong_configuration_is_reported_with_the_fitting_one(values, keys, fitting, tmp_path):
    handmade_store = HandmadeStore()
    for number in range(60):
        handmade_store.put(keys=f"K{number}")
    config = MessageStoreConfig(**values, given=frozenset(keys.split()))
    finding = next(
        item
        for item in findings_of(handmade_store.write(tmp_path / "store"), config=config)
        if item.severity == "error"
    )
    assert (finding.id, finding.evidence["fitting"]) == ("CF05", fitting)
    assert finding.message.endswith(" and ".join(f"{key}={value}" for key, value in fitting.items()) + " fits")


def test_a_ratio_that_a_broker_changes_is_a_warning(tmp_path):
    handmade_store = HandmadeStore()
    handmade_store.put()
    config = MessageStoreConfig(disk_max_used_space_ratio=150, given=frozenset({"diskMaxUsedSpaceRatio"}))
    finding = next(
        item
        for item in findings_of(handmade_store.write(tmp_path / "store"), config=config)
        if item.id == "CF05" and "Ratio" in item.message
    )
    assert (finding.severity, finding.evidence["expected"], finding.evidence["found"]) == ("warn", 95, 150)
    assert finding.message == "diskMaxUsedSpaceRatio is 150; a broker takes 95 instead, without any warning"
