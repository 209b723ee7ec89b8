"""A missing, blank, truncated or foreign index is one fault. Each is built in a broker's own store."""

from __future__ import annotations

import shlex
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import healthy

from engine.cli.main import main
from engine.config import MessageStoreConfig
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden
FILES = 16


@pytest.fixture
def store(golden, tmp_path) -> Path:
    path = tmp_path / "store"
    return Path(shutil.copytree(golden("broker-orders"), path, ignore=shutil.ignore_patterns("timerwheel")))


def findings_of(root: Path, config: MessageStoreConfig | None = None) -> list[Finding]:
    with open_store(root, config) as opened:
        return [finding for finding in check(opened) if isinstance(finding, Finding) and finding.group == "index"]


def fourth(root: Path) -> Path:
    return sorted((root / "index").iterdir())[3]


def test_a_missing_index_is_built_again_by_the_command(store, tmp_path):
    shutil.rmtree(store / "index")
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity, finding.file) == ("IX10", "warn", str(store / "index"))
    assert finding.command == f"storescope dispatch {store} --to NEW"
    words = shlex.split(finding.command.replace("NEW", str(tmp_path / "new")))
    assert main([*words[1:], "--yes"]) == 0
    assert len(list((tmp_path / "new" / "index").iterdir())) >= 1


def test_a_store_of_a_broker_without_an_index_has_no_finding(store):
    shutil.rmtree(store / "index")
    texts = frozenset({"messageIndexEnable"})
    assert findings_of(store, MessageStoreConfig(message_index_enable=False, given=texts)) == []


def test_an_index_lost_with_the_queues_is_a_consequence(store):
    shutil.rmtree(store / "index")
    shutil.rmtree(store / "consumequeue")
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity, finding.caused_by) == ("IX10", "note", "CQ10")


BLANK: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: file.write_bytes(b""), "is empty (0 bytes)"),
    (lambda file: file.write_bytes(bytes(file.stat().st_size)), "is all zero"),
]


@pytest.mark.parametrize(("blank", "words"), BLANK, ids=["empty", "zero"])
def test_a_blank_file_is_the_cause_of_its_missing_keys(blank, words, store):
    blank(fourth(store))
    blank_file, missing_keys = findings_of(store)
    assert (blank_file.id, blank_file.severity, blank_file.file) == ("IX10", "warn", str(fourth(store)))
    assert blank_file.message == f"{fourth(store).name} {words}: the keys that were in it are not found"
    assert (missing_keys.id, missing_keys.caused_by, missing_keys.evidence["keys"]) == ("IX05", "IX10", 399)


def test_a_file_just_begun_by_a_killed_broker_is_no_finding(store):
    newest = max((store / "index").iterdir())
    newest.write_bytes(bytes(newest.stat().st_size))
    (store / "abort").touch()
    assert "IX10" not in {finding.id for finding in findings_of(store)}


def test_a_truncated_copy_is_not_a_configuration_error(store):
    fourth(store).write_bytes(fourth(store).read_bytes()[:4220])
    cut_file, missing_keys = findings_of(store)
    assert (cut_file.id, cut_file.severity, cut_file.offset) == ("IX08", "error", 4220)
    assert cut_file.message == f"{fourth(store).name} has 4,220 bytes, the other files have 8,440: it was cut"
    assert "--config" not in cut_file.next_step
    assert missing_keys.caused_by == "IX08"


@pytest.mark.parametrize("name", ["broker-retries", "broker-transactions"])
def test_the_index_of_another_store_is_one_finding(name, store, golden):
    shutil.rmtree(store / "index")
    shutil.copytree(golden(name) / "index", store / "index")
    foreign_index, missing_keys = findings_of(store)
    assert (foreign_index.id, foreign_index.severity) == ("IX06", "error")
    assert foreign_index.message.endswith("lead to no unit with their key: it is the index of another store")
    assert foreign_index.evidence["wrong"] >= foreign_index.evidence["entries"] - 1
    assert (missing_keys.id, missing_keys.caused_by) == ("IX05", "IX06")


def test_an_index_beyond_the_log_is_one_finding_too(golden, tmp_path):
    path = tmp_path / "retries"
    shutil.copytree(golden("broker-retries"), path, ignore=shutil.ignore_patterns("timerwheel"))
    shutil.rmtree(path / "index")
    shutil.copytree(golden("broker-orders") / "index", path / "index")
    foreign_index, *_ = findings = findings_of(path)
    assert [finding.id for finding in findings if finding.severity == "error"] == ["IX06"]
    assert f"in {FILES} index files lead to no unit" in foreign_index.message


def test_an_index_whose_log_lost_its_tail_is_not_another_stores(store):
    for file in sorted((store / "commitlog").iterdir())[1:]:
        file.write_bytes(bytes(file.stat().st_size))
    assert not [item for item in findings_of(store) if "another store" in item.message]


def test_a_loop_is_reported_as_a_loop(tmp_path):
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN["IX03"](root, new_store)
    (results,) = (finding for finding in findings_of(root) if finding.id == "IX03")
    assert "links to itself: the chain is a loop, a query that comes here never ends" in results.message


def overwrite_index_file(old_file: bytes, new_file: bytes) -> bytes:
    """Put ``new_file``'s entries like RocketMQ into an existing file of that name, whose slots stay."""
    slots = 100
    data = bytearray(old_file)
    begin, end, begin_phy, end_phy, _, count = struct.unpack_from(">qqqqii", new_file, 0)
    used = 0
    for number in range(1, count):
        position = 40 + 4 * slots + 20 * number
        key_hash, physical, diff, _ = struct.unpack_from(">iqii", new_file, position)
        slot = 40 + 4 * (abs(key_hash) % slots)
        old = struct.unpack_from(">i", data, slot)[0]
        old = old if 0 < old <= number else 0
        struct.pack_into(">iqii", data, position, key_hash, physical, diff, old)
        struct.pack_into(">i", data, slot, number)
        used += old == 0
    struct.pack_into(">qqqqii", data, 0, begin, end, begin_phy, end_phy, used, count)
    return bytes(data)


@pytest.mark.golden
def test_files_of_one_millisecond_that_overwrote_each_other_are_named(golden, tmp_path):
    """A store that was closed and never damaged had three findings, two of them errors, and none named the cause."""
    root = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), root)
    first_file, second_file = sorted((root / "index").iterdir())[5:7]
    second_file.write_bytes(overwrite_index_file(first_file.read_bytes(), second_file.read_bytes()))
    first_file.unlink()
    with open_store(root) as store:
        reported = [finding for finding in list(check(store))[:-1] if finding.id.startswith("IX")]
    assert [(finding.id, finding.severity, finding.caused_by) for finding in reported] == [
        ("IX09", "note", None),
        ("IX05", "note", "IX09"),
    ]
    assert (
        "created within one millisecond, and the second overwrote the first: 399 keys are lost" in reported[0].message
    )
    assert reported[0].file == str(second_file)


@pytest.mark.parametrize("name", ["abc", "20261121081029603.bak"])
def test_an_index_file_that_a_broker_ignores_is_named(store, name):
    """The only report was a note on missing keys."""
    fourth(store).rename(store / "index" / name)
    renamed_file, missing_keys = findings_of(store)
    assert (renamed_file.id, renamed_file.severity, renamed_file.file) == ("IX10", "warn", str(store / "index" / name))
    assert renamed_file.message.startswith(f"The file {name} has the length of an index file")
    assert (missing_keys.id, missing_keys.caused_by, missing_keys.evidence["keys"]) == ("IX05", "IX10", 399)


def test_blank_files_are_one_finding(store):
    for file in (store / "index").iterdir():
        file.write_bytes(bytes(file.stat().st_size))
    (finding,) = [item for item in findings_of(store) if item.severity == "warn"]
    assert (finding.id, len(finding.evidence["files"])) == ("IX10", FILES)
    assert finding.message.startswith(f"{FILES} index files are empty or all zero")


LOST = [
    pytest.param(slice(None, None, 2), (), "warn", id="half of them"),
    pytest.param(slice(4, 5), (), "note", id="one of them"),
    pytest.param(slice(8, None), ("abort",), "warn", id="half of them, before what a start indexes again"),
    pytest.param(slice(15, None), ("abort",), "chat", id="the newest, which a start indexes again"),
]


@pytest.mark.parametrize(("part", "touched", "severity"), LOST)
def test_the_severity_of_missing_keys_follows_their_number(store, part, touched, severity):
    """With an abort file it was only a remark, however many queries failed permanently."""
    for file in sorted((store / "index").iterdir())[part]:
        file.unlink()
    for name in touched:
        (store / name).touch()
    finding = next(item for item in findings_of(store) if item.id == "IX05")
    assert finding.severity == severity
    assert finding.message.endswith("the next start of RocketMQ 5.3.3 indexes them again") == (severity == "chat")


def test_a_missing_index_is_reported_without_keys_too(golden, tmp_path):
    """The messages had unique keys and tags, and no KEYS. The check reported nothing, although no query found a
    message.
    """
    shutil.copytree(golden("broker-tags-5.5.1"), tmp_path / "store", ignore=shutil.ignore_patterns("index"))
    (finding,) = [actual_finding for actual_finding in findings_of(tmp_path / "store") if actual_finding.id == "IX10"]
    assert (finding.severity, finding.evidence["unitsWithKeys"]) == ("warn", 64)
