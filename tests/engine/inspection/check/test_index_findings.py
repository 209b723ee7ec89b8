"""An index that is gone, blank, cut or another store's is one fault; each is built in a broker's own store."""

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


def test_a_broker_that_makes_no_index_lacks_none(store):
    shutil.rmtree(store / "index")
    texts = frozenset({"messageIndexEnable"})
    assert findings_of(store, MessageStoreConfig(message_index_enable=False, given=texts)) == []


def test_an_index_that_went_with_the_queues_follows_from_that(store):
    shutil.rmtree(store / "index")
    shutil.rmtree(store / "consumequeue")
    (finding,) = findings_of(store)
    assert (finding.id, finding.severity, finding.caused_by) == ("IX10", "note", "CQ10")


BLANK: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: file.write_bytes(b""), "is empty (0 bytes)"),
    (lambda file: file.write_bytes(bytes(file.stat().st_size)), "is all zero"),
]


@pytest.mark.parametrize(("blank", "words"), BLANK, ids=["empty", "zero"])
def test_a_file_with_nothing_in_it_is_named_above_the_keys_it_lacks(blank, words, store):
    blank(fourth(store))
    first, then = findings_of(store)
    assert (first.id, first.severity, first.file) == ("IX10", "warn", str(fourth(store)))
    assert first.message == f"{fourth(store).name} {words}: the keys that were in it are not found"
    assert (then.id, then.caused_by, then.evidence["keys"]) == ("IX05", "IX10", 399)


def test_a_file_that_a_killed_broker_had_only_begun_is_none(store):
    newest = max((store / "index").iterdir())
    newest.write_bytes(bytes(newest.stat().st_size))
    (store / "abort").touch()
    assert "IX10" not in {finding.id for finding in findings_of(store)}


def test_a_copy_that_was_cut_is_no_matter_of_configuration(store):
    fourth(store).write_bytes(fourth(store).read_bytes()[:4220])
    first, then = findings_of(store)
    assert (first.id, first.severity, first.offset) == ("IX08", "error", 4220)
    assert first.message == f"{fourth(store).name} has 4,220 bytes, the other files have 8,440: it was cut"
    assert "--config" not in first.next_step
    assert then.caused_by == "IX08"


@pytest.mark.parametrize("name", ["broker-retries", "broker-transactions"])
def test_the_index_of_another_store_is_one_finding(name, store, golden):
    shutil.rmtree(store / "index")
    shutil.copytree(golden(name) / "index", store / "index")
    first, then = findings_of(store)
    assert (first.id, first.severity) == ("IX06", "error")
    assert first.message.endswith("lead to no unit with their key: it is the index of another store")
    assert first.evidence["wrong"] >= first.evidence["entries"] - 1
    assert (then.id, then.caused_by) == ("IX05", "IX06")


def test_so_is_one_that_goes_beyond_the_log(golden, tmp_path):
    path = tmp_path / "retries"
    shutil.copytree(golden("broker-retries"), path, ignore=shutil.ignore_patterns("timerwheel"))
    shutil.rmtree(path / "index")
    shutil.copytree(golden("broker-orders") / "index", path / "index")
    first, *_ = results = findings_of(path)
    assert [finding.id for finding in results if finding.severity == "error"] == ["IX06"]
    assert f"in {FILES} index files lead to no unit" in first.message


def test_an_index_whose_log_lost_its_tail_is_not_another_stores(store):
    for file in sorted((store / "commitlog").iterdir())[1:]:
        file.write_bytes(bytes(file.stat().st_size))
    assert not [item for item in findings_of(store) if "another store" in item.message]


def test_a_loop_says_that_it_is_one(tmp_path):
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN["IX03"](root, new_store)
    (results,) = (finding for finding in findings_of(root) if finding.id == "IX03")
    assert "links to itself: the chain is a loop, a query that comes here never ends" in results.message


def second_life(first: bytes, second: bytes) -> bytes:
    """``second``'s entries as RocketMQ puts them into a file of that name that was there: its slots are taken over."""
    slots = 100
    data = bytearray(first)
    begin, end, begin_phy, end_phy, _, count = struct.unpack_from(">qqqqii", second, 0)
    used = 0
    for number in range(1, count):
        position = 40 + 4 * slots + 20 * number
        key_hash, physical, diff, _ = struct.unpack_from(">iqii", second, position)
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
    """Three findings, two of them errors, on a store that was closed and never damaged; none named the cause."""
    root = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), root)
    first, second = sorted((root / "index").iterdir())[5:7]
    second.write_bytes(second_life(first.read_bytes(), second.read_bytes()))
    first.unlink()
    with open_store(root) as store:
        reported = [finding for finding in list(check(store))[:-1] if finding.id.startswith("IX")]
    assert [(item.id, item.severity, item.caused_by) for item in reported] == [
        ("IX09", "note", None),
        ("IX05", "note", "IX09"),
    ]
    assert (
        "created within one millisecond, and the second overwrote the first: 399 keys are lost" in reported[0].message
    )
    assert reported[0].file == str(second)


@pytest.mark.parametrize("name", ["abc", "20261121081029603.bak"])
def test_an_index_file_that_a_broker_passes_over_is_named(store, name):
    """Nothing told of it but a note on keys."""
    fourth(store).rename(store / "index" / name)
    first, then = findings_of(store)
    assert (first.id, first.severity, first.file) == ("IX10", "warn", str(store / "index" / name))
    assert first.message.startswith(f"The file {name} has the length of an index file")
    assert (then.id, then.caused_by, then.evidence["keys"]) == ("IX05", "IX10", 399)


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
def test_keys_that_are_missing_are_as_grave_as_they_are_many(store, part, touched, severity):
    """With abort it was a remark, however many queries found nothing for good."""
    for file in sorted((store / "index").iterdir())[part]:
        file.unlink()
    for name in touched:
        (store / name).touch()
    finding = next(item for item in findings_of(store) if item.id == "IX05")
    assert finding.severity == severity
    assert finding.message.endswith("the next start of RocketMQ 5.3.3 indexes them again") == (severity == "chat")


def test_an_index_that_is_gone_is_told_of_a_store_without_keys_too(golden, tmp_path):
    """The messages had unique keys and tags, and no KEYS. The check had nothing to say, and no query found any."""
    shutil.copytree(golden("broker-tags-5.5.1"), tmp_path / "store", ignore=shutil.ignore_patterns("index"))
    (finding,) = [actual_finding for actual_finding in findings_of(tmp_path / "store") if actual_finding.id == "IX10"]
    assert (finding.severity, finding.evidence["unitsWithKeys"]) == ("warn", 64)
